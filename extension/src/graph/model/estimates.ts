/** The least time that a device can take for a node, by the roofline model: it moves its bytes and does its operations. */

import type { EstimateTarget } from "../../protocol";

const OTHERS = "f32";

/** @returns microseconds; undefined if neither bytes nor operations are known */
export function leastMicros(
  { bandwidth, rates }: EstimateTarget,
  moved: number | null | undefined,
  flops: number | null | undefined,
  dtype: string,
): number | undefined {
  const rateOf = (wanted: string): number | undefined => rates.find((rate) => rate.dtype === wanted)?.flops;
  const rate = rateOf(dtype) ?? rateOf(OTHERS);
  const times = [
    ...(moved === null || moved === undefined ? [] : [moved / bandwidth]),
    ...(flops === null || flops === undefined || rate === undefined ? [] : [flops / rate]),
  ];
  return times.length === 0 ? undefined : 1e6 * Math.max(...times);
}

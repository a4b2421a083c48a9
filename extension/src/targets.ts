/**
 * The devices of irscope's own catalogue, by the names that the setting takes. Generated: change
 * compiler/irscope/targets/catalogue.json, run `npm run fmt`.
 */

/** Name and title; titles are those of products. */
export const TARGETS: readonly (readonly [string, string])[] = [
  ["a100", "NVIDIA A100 80GB SXM"],
  ["h100", "NVIDIA H100 SXM"],
  ["h200", "NVIDIA H200 SXM"],
  ["b200", "NVIDIA B200"],
  ["gb300", "NVIDIA GB300"],
  ["rtx4090", "NVIDIA GeForce RTX 4090"],
  ["l4", "NVIDIA L4"],
  ["l40s", "NVIDIA L40S"],
  ["mi300x", "AMD Instinct MI300X"],
  ["mi355x", "AMD Instinct MI355X"],
  ["cpu-avx2", "CPU with AVX2"],
  ["cpu-avx512", "CPU with AVX-512"],
  ["cpu-amx", "CPU with AVX-512 and AMX"],
];

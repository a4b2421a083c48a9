/** The parts of the compiler that phases belong to. */

import { pathTo } from "../measures/flame";
import type { Box } from "../measures/box";
import type { PathBox } from "../measures/tree";

/** PyTorch's names of what belongs to which part of the compiler, the innermost part last. */
export const PARTS: { part: string; title: string; pattern: RegExp }[] = [
  { part: "dynamo", title: "Dynamo", pattern: /^(dynamo|bytecode|build_guards|compile_attempt|entire_frame|gc\b)/ },
  { part: "aot", title: "AOTAutograd", pattern: /^(create_aot|aot_|min_cut|_recursive_joint|entire_backward)/ },
  {
    part: "inductor",
    title: "Inductor",
    pattern: /^(compile_fx|inductor|fx_codegen|GraphLowering|Scheduler|_recursive_p|code_gen|PythonWrapper)/,
  },
  { part: "kernels", title: "kernels", pattern: /^(compile_file|async_compile|PyCodeCache|triton|Triton)/ },
];

/** The part of the compiler; what has no part itself belongs to that of what is around it. */
export function partOf(box: Box): string {
  for (const { names, depth } of pathTo(box) as PathBox[]) {
    const found =
      depth > 1 ? names.flatMap((name) => PARTS.filter(({ pattern }) => pattern.test(name))).at(-1) : undefined;
    if (found !== undefined) {
      return found.part;
    }
  }
  return box.depth === 1 ? "compile" : "whole";
}

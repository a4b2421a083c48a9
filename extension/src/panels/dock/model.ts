/** Which run a tab shows. */

import type { Subject, Tab } from "../messages";
import { REGISTRY } from "../registry";

export function runOf(tab: Tab, { run, deep }: Subject): string {
  return REGISTRY[tab].isDeep ? (deep ?? run) : run;
}

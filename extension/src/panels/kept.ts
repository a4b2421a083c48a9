/** What a panel in a page of `irscope view` was like when it was left: kept under its address, as long as the tab is open. */

const keyOf = (address: string): string => `irscope${address}`;

export function kept(address: string): unknown {
  return JSON.parse(window.sessionStorage.getItem(keyOf(address)) ?? "null") as unknown;
}

export function keep(address: string, state: unknown): void {
  window.sessionStorage.setItem(keyOf(address), JSON.stringify(state));
}

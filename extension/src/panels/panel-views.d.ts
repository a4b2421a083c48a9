/** What `scripts/build.mjs` makes of the registry: the `create` of each tab's `view.ts`. */
/* eslint-disable @typescript-eslint/consistent-type-imports -- an ambient module cannot import by a relative name */
declare module "panel-views" {
  export const creators: Record<
    import("./registry").Tab,
    (surroundings: import("./view").Surroundings) => import("./view").View
  >;
}

declare module "graph-worker-source" {
  /** The text of ELK's worker. */
  const source: string;
  export default source;
}

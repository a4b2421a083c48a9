/**
 * The rooms of `extension/src`, from the top: a room may import only rooms below it. A room is a folder; the files beside
 * the folders are the lowest one, `.`. `npm run check` fails if a folder is not listed.
 */

/**
 * @typedef {object} Room
 * @property {string} folder below extension/src; `panels/*` are all folders in `panels` that are not listed
 * @property {string[]} rooms the other rooms that it may import
 * @property {string[]} packages the packages that it may import: a name, a scope, or `node` for Node's own modules
 */

/** Runs in a web page, so it has neither VS Code nor Node. @type {string[]} */
const IN_A_PAGE = [];

/** @type {Room[]} */
export const ROOMS = [
  { folder: "activation", rooms: ["commands", "linked", "host"], packages: ["vscode"] },
  { folder: "commands", rooms: ["linked", "host", "panels", "."], packages: ["vscode", "node"] },
  { folder: "linked", rooms: ["host", "."], packages: ["vscode"] },
  { folder: "host", rooms: ["panels", "."], packages: ["vscode", "vscode-languageclient", "node"] },

  { folder: "view", rooms: ["view/highlighting", "panels", "."], packages: ["@codemirror"] },
  {
    folder: "view/highlighting",
    rooms: [],
    packages: ["@codemirror", "@lezer", "@shikijs", "contributed-grammars", "grammar-worker-source"],
  },

  {
    folder: "graph/page",
    rooms: ["graph/draw", "graph/layout", "graph/model", "panels", "."],
    packages: IN_A_PAGE,
  },
  { folder: "graph/draw", rooms: ["graph/layout", "graph/model", "panels", "."], packages: IN_A_PAGE },
  { folder: "graph/layout", rooms: ["graph/model"], packages: ["elkjs", "graph-worker-source"] },
  { folder: "graph/model", rooms: ["."], packages: IN_A_PAGE },

  { folder: "panels/dock", rooms: ["panels", "."], packages: ["panel-views"] },
  { folder: "panels/measured", rooms: ["panels/measures", "panels", "."], packages: IN_A_PAGE },
  { folder: "panels/summary", rooms: ["panels/measures", "panels", "."], packages: IN_A_PAGE },
  { folder: "panels/changes", rooms: ["panels/measures", "panels", "."], packages: IN_A_PAGE },
  { folder: "panels/memory", rooms: ["panels/measures", "panels", "."], packages: IN_A_PAGE },
  { folder: "panels/time", rooms: ["panels/measures", "panels", "."], packages: IN_A_PAGE },
  { folder: "panels/measures", rooms: ["panels", "."], packages: IN_A_PAGE },
  { folder: "panels/*", rooms: ["panels", "."], packages: IN_A_PAGE },
  { folder: "panels", rooms: ["."], packages: IN_A_PAGE },

  { folder: ".", rooms: [], packages: [] },
];

/** Rooms that run in the extension host. The others run in web pages, which have no `vscode.l10n`. */
export const HOST_ROOMS = ROOMS.filter(({ packages }) => packages.includes("vscode")).map(({ folder }) => folder);

/**
 * Who may import what in `extension/src`: no circle of modules, and each room imports only what `lib/rooms.mjs` says.
 * Imports of types, in functions and in types (`import("./x").X`) count, and so do exports from another module.
 */

import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { ROOT } from "./lib/paths.mjs";
import { ROOMS } from "./lib/rooms.mjs";
import { runMain } from "./lib/terminal.mjs";

const SOURCES = path.join(ROOT, "extension", "src");
/** What only a bundler reads: no module. */
const DATA = /\.(css|json)$/;

/** @typedef {Map<string, string>} Sources texts by path below extension/src */
/** @typedef {{name: string, line: number, target: string | undefined}} Import its target is a module of the sources */

/** The modules of the extension. @returns {Sources} */
export function readSources() {
  const names = fs.readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return new Map(
    names.sort().map((name) => [name.replaceAll("\\", "/"), fs.readFileSync(path.join(SOURCES, name), "utf8")]),
  );
}

/** All that is wrong, a line each. @param {Sources} sources */
export function problemsOf(sources) {
  const imports = new Map([...sources].map(([file, text]) => [file, importsOf(file, text, sources)]));
  return [...imports].flatMap(([file, ofFile]) => forbiddenIn(file, ofFile)).concat(circlesIn(imports));
}

/** @param {string} file @param {string} text @param {Sources} sources @returns {Import[]} */
function importsOf(file, text, sources) {
  const { importedFiles, referencedFiles } = ts.preProcessFile(text, true, true);
  const referenced = referencedFiles.map(({ fileName, pos }) => ({ fileName: `./${fileName}`, pos }));
  return [...importedFiles, ...referenced].map(({ fileName: name, pos }) => {
    const whole = path.posix.join(path.posix.dirname(file), name);
    const candidates = [whole, `${whole}.ts`, `${whole}.d.ts`, path.posix.join(whole, "index.ts")];
    const target = name.startsWith(".") ? candidates.find((candidate) => sources.has(candidate)) : undefined;
    return { name, line: text.slice(0, pos).split("\n").length, target };
  });
}

/** @param {string} file @param {Import[]} imports */
function forbiddenIn(file, imports) {
  const room = roomOf(file);
  if (room === undefined) {
    return [`extension/src/${file}: its folder is not a room; list it in scripts/lib/rooms.mjs`];
  }
  return imports
    .filter(({ name, target }) => !mayImport(file, name, target))
    .map(({ name, line }) => `extension/src/${file}:${line}: ${room.folder} may not import "${name}"`);
}

/** @param {string} file @param {string} name @param {string | undefined} target */
function mayImport(file, name, target) {
  const room = roomOf(file);
  if (target !== undefined) {
    const folder = path.posix.dirname(target);
    return folder === path.posix.dirname(file) || room?.rooms.includes(folder);
  }
  if (name.startsWith(".")) {
    return DATA.test(name);
  }
  const [packageName = name] = /^node(?=:)|^[^/]+/.exec(name) ?? [];
  return room?.packages.includes(packageName);
}

/** @param {string} file */
function roomOf(file) {
  const folder = path.posix.dirname(file);
  const others = `${path.posix.dirname(folder)}/*`;
  return ROOMS.find((room) => room.folder === folder) ?? ROOMS.find((room) => room.folder === others);
}

/**
 * Modules that import each other, the shortest circles first. A circle that shares a module with one that is listed is left
 * out: one import too many makes dozens of them.
 * @param {Map<string, Import[]>} imports
 */
function circlesIn(imports) {
  /** @type {Set<string>} */
  const listed = new Set();
  return [...imports.keys()]
    .map((file) => circleThrough(file, imports))
    .filter((circle) => circle.length > 0)
    .sort((left, right) => left.length - right.length)
    .flatMap((circle) => {
      if (circle.some((file) => listed.has(file))) {
        return [];
      }
      circle.forEach((file) => listed.add(file));
      return [`These modules of extension/src import each other: ${[...circle, circle[0]].join(" → ")}`];
    });
}

/** The shortest circle that begins with a module; empty: it is in no circle. @param {string} first @param {Map<string, Import[]>} imports */
function circleThrough(first, imports) {
  /** The shortest way to each module that was reached. */
  const ways = new Map([[first, [first]]]);
  for (const [file, way] of ways) {
    for (const { target } of imports.get(file) ?? []) {
      if (target === first) {
        return way;
      }
      if (target !== undefined && !ways.has(target)) {
        ways.set(target, [...way, target]);
      }
    }
  }
  return [];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await runMain(async () => {
    const problems = problemsOf(readSources());
    problems.forEach((problem) => console.error(problem));
    return problems.length === 0 ? 0 : 1;
  });
}

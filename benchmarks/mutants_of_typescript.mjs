/** Prints all mutants of TypeScript files, as JSON: `node benchmarks/mutants_of_typescript.mjs FILE…` (see mutants.py). */

import * as fs from "node:fs";
import ts from "typescript";

const { SyntaxKind } = ts;

/** @typedef {{file: string, line: number, text: string, column: number, old: string, new: string, kind: string}} Mutant */

/** @type {Map<ts.SyntaxKind, string>} */
const OPPOSITES = new Map([
  [SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [SyntaxKind.LessThanToken, ">="],
  [SyntaxKind.LessThanEqualsToken, ">"],
  [SyntaxKind.GreaterThanToken, "<="],
  [SyntaxKind.GreaterThanEqualsToken, "<"],
  [SyntaxKind.AmpersandAmpersandToken, "||"],
  [SyntaxKind.BarBarToken, "&&"],
]);

console.log(JSON.stringify(process.argv.slice(2).flatMap(mutantsOf)));

/** @param {string} file @returns {Mutant[]} */
function mutantsOf(file) {
  const source = ts.createSourceFile(file, fs.readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  const lines = source.text.split("\n");
  /** @type {Mutant[]} */
  const mutants = [];
  /** @param {number} start @param {number} end @param {string} changed @param {string} kind */
  const add = (start, end, changed, kind) => {
    const { line, character } = source.getLineAndCharacterOfPosition(start);
    const text = lines[line] ?? "";
    const isOnOneLine = source.getLineAndCharacterOfPosition(end).line === line;
    // Python counts characters, JavaScript halves of some.
    if (isOnOneLine && !/[\ud800-\udfff]/.test(text)) {
      const old = source.text.slice(start, end);
      mutants.push({ file, line: line + 1, text, column: character, old, new: changed, kind });
    }
  };
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node) || isTypeOnly(node)) {
      return;
    }
    changesOf(node, source, add);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return mutants;
}

/** @param {ts.Node} node */
function isTypeOnly(node) {
  return ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);
}

/**
 * @param {ts.Node} node @param {ts.SourceFile} source
 * @param {(start: number, end: number, changed: string, kind: string) => void} add
 */
function changesOf(node, source, add) {
  const start = node.getStart(source);
  const text = node.getText(source);
  if (ts.isBinaryExpression(node)) {
    const opposite = OPPOSITES.get(node.operatorToken.kind);
    if (opposite !== undefined) {
      const kind = opposite === "||" || opposite === "&&" ? "and/or" : "comparison turned round";
      add(node.operatorToken.getStart(source), node.operatorToken.end, opposite, kind);
    }
  } else if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken) {
    add(start, node.end, node.operand.getText(source), "not taken away");
  } else if (ts.isIfStatement(node) || ts.isWhileStatement(node)) {
    add(node.expression.getStart(source), node.expression.end, `!(${node.expression.getText(source)})`, "not added");
  } else if (ts.isConditionalExpression(node)) {
    add(node.condition.getStart(source), node.condition.end, `!(${node.condition.getText(source)})`, "not added");
  } else if (ts.isNumericLiteral(node) && !ts.isPropertyAssignment(node.parent)) {
    add(start, node.end, String(Number(text.replaceAll("_", "")) + 1), "constant changed");
  } else if (ts.isStringLiteral(node) && node.text !== "") {
    const isName = ts.isPropertyAssignment(node.parent) && node.parent.name === node;
    if (!isName && !ts.isExpressionStatement(node.parent)) {
      add(start, node.end, '""', "constant changed");
    }
  } else if (node.kind === SyntaxKind.TrueKeyword || node.kind === SyntaxKind.FalseKeyword) {
    add(start, node.end, text === "true" ? "false" : "true", "constant changed");
  } else if (
    ts.isReturnStatement(node) &&
    node.expression !== undefined &&
    node.expression.getText(source) !== "undefined"
  ) {
    add(node.expression.getStart(source), node.expression.end, "undefined", "None returned");
  } else if (ts.isExpressionStatement(node) && node.parent !== source) {
    add(start, node.end, ";", "statement dropped");
  } else if (ts.isCallExpression(node)) {
    argumentsDropped(node, source, add);
  }
}

/**
 * @param {ts.CallExpression} node @param {ts.SourceFile} source
 * @param {(start: number, end: number, changed: string, kind: string) => void} add
 */
function argumentsDropped(node, source, add) {
  const last = node.arguments.at(-1);
  if (last !== undefined) {
    const start = node.arguments.at(-2)?.end ?? last.getStart(source);
    add(start, last.end, "", "argument dropped");
  }
  const isSliced = ts.isPropertyAccessExpression(node.expression) && node.expression.name.text === "slice";
  for (const bound of isSliced ? node.arguments : []) {
    add(bound.getStart(source), bound.end, `(${bound.getText(source)}) + 1`, "slice off by one");
  }
}

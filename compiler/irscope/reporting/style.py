"""How a report looks, in light and dark, on a screen and on a phone."""

STYLE = """
:root { color-scheme: light dark; --ink: #1f1f1f; --dim: #5f5f5f; --page: #ffffff; --card: #f6f6f6; --line: #d8d8d8;
  --error: #b3261e; --warning: #8a5a00; --information: #0b57a4; --hint: #4a5a6a; --link: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e4e4; --dim: #a8a8a8; --page: #1b1b1b; --card: #252525; --line: #3c3c3c;
  --error: #ff8a80; --warning: #f0c060; --information: #8ab8f0; --hint: #a8b8c8; --link: #8ab8f0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px; max-width: 1100px; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--page); overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 4px; } h2 { font-size: 1.2rem; margin: 32px 0 8px; }
h3 { font-size: 1rem; margin: 0 0 4px; }
p { margin: 4px 0; } .dim { color: var(--dim); } a { color: var(--link); }
pre, code { font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; }
pre { margin: 8px 0; padding: 8px 10px; background: var(--page); border: 1px solid var(--line); border-radius: 4px;
  overflow-x: auto; white-space: pre; tab-size: 4; max-height: 70vh; }
pre.words { white-space: pre-wrap; border: 0; padding: 0; background: none; max-height: none; font-family: inherit;
  font-size: 14px; }
.finding { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--dim); border-radius: 4px;
  padding: 12px 14px; margin: 12px 0; }
.error { border-left-color: var(--error); } .warning { border-left-color: var(--warning); }
.information { border-left-color: var(--information); } .hint { border-left-color: var(--hint); }
.error .kind { color: var(--error); } .warning .kind { color: var(--warning); }
.information .kind { color: var(--information); } .hint .kind { color: var(--hint); }
.kind { font-weight: 600; } .carets { font-weight: 700; }
ul { margin: 4px 0; padding-left: 20px; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; }
th, td { text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: normal; }
th { color: var(--dim); font-weight: 600; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
details { border-top: 1px solid var(--line); padding: 4px 0; } details details { margin-left: 14px; }
summary { cursor: pointer; padding: 2px 0; } summary:focus-visible, a:focus-visible { outline: 2px solid var(--link); }
img { max-width: 100%; height: auto; display: block; margin: 8px 0; }
@media (max-width: 600px) { body { padding: 12px; } details details { margin-left: 6px; } }
"""

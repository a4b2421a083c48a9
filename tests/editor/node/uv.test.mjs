/** pip's settings, handed on to uv (scripts/lib/uv.mjs). */

import assert from "node:assert/strict";
import * as os from "node:os";
import { pathToFileURL } from "node:url";
import { asVariables } from "../../../scripts/lib/uv.mjs";

describe("pip's settings for uv", () => {
  it("without settings, uv differs from its default only in how it chooses between indexes", () => {
    assert.deepEqual(asVariables(""), { UV_INDEX_STRATEGY: "unsafe-best-match" });
  });

  it("settings of files and of the environment become uv's variables", () => {
    const folder = pathToFileURL(os.tmpdir()).href;
    const listed = `
:env:.find-links='/opt/wheels'
:env:.disable-pip-version-check='1'
global.cert='/etc/ssl/certs/ca.crt'
global.constraint='/etc/pip/constraints.txt'
global.extra-index-url='\\n${folder}\\nfile:///is/not/there'
install.find-links='/a /b'
global.index-url='https://example.org/simple'
`;
    assert.deepEqual(asVariables(listed), {
      UV_INDEX_STRATEGY: "unsafe-best-match",
      SSL_CERT_FILE: "/etc/ssl/certs/ca.crt",
      UV_CONSTRAINT: "/etc/pip/constraints.txt",
      UV_INDEX: folder,
      UV_FIND_LINKS: "/a,/b",
      UV_DEFAULT_INDEX: "https://example.org/simple",
    });
  });
});

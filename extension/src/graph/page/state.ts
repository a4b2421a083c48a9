/** What is kept of the panel while it is hidden, and when the window is reloaded. */

import type { Change } from "../../panels/ahead";
import type { Subject } from "../../panels/messages";
import type { Grouping } from "../model/grouping";
import type { ColourMode } from "../draw/colours";
import type { Camera } from "../draw/camera";

export interface State {
  subject: Subject;
  view: Camera["rest"];
  /** Name of a node, or key of a cluster. */
  selected: string;
  search: string;
  only: boolean;
  grouping: Grouping;
  colour: ColourMode | undefined;
  /** The device that times are estimated for, by its name. */
  target: string | undefined;
  /** Keys of the open clusters. */
  open: string[];
  /** The stage that is shown in place of the subject's, with the one before it: what a pass did. */
  change: Change | undefined;
}

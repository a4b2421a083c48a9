import "../panel.css";
import { alone } from "../view";
import { createChanges } from "./changes";

alone(createChanges);

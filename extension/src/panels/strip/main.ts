import "../panel.css";
import { alone } from "../view";
import { createStrip } from "./strip";

alone(createStrip);

import "../panel.css";
import { alone } from "../view";
import { createFindings } from "./findings";

alone(createFindings);

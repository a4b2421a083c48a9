import "../panel.css";
import "./values.css";
import { alone } from "../view";
import { createValues } from "./values";

alone(createValues);

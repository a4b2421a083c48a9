import "../panel.css";
import "./values.css";
import { alone } from "../view";
import { create } from "./view";

alone(create);

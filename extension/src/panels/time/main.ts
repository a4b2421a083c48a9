import "../panel.css";
import { alone } from "../view";
import { createTime } from "./time";

alone(createTime);

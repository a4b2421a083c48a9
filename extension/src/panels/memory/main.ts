import "../panel.css";
import { alone } from "../view";
import { createMemory } from "./memory";

alone(createMemory);

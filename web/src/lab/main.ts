import { mount } from "svelte";

import "../app.css";
import "./lab.css";
import Lab from "./Lab.svelte";

const target = document.getElementById("app");
if (target) mount(Lab, { target });

/** The Worker of a page, with all of the package. */

import * as engine from "../platform/browser-engine.js";
import { run } from "./page.js";

run(engine);

/** The worker thread of Node, with all of the package. */

import * as engine from "../platform/node-engine.js";
import { run } from "./thread.js";

run(engine);

/** The worker thread of Node that only searches. */

import * as engine from "../platform/node-search.js";
import { run } from "./thread.js";

run(engine);

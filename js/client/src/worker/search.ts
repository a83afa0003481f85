/** The Worker of a page that only searches. */

import * as engine from "../platform/browser-search.js";
import { run } from "./page.js";

run(engine);

/** Page of the browser tests that has the package for searching alone. */

import * as searching from "@ciphervec/client/search";

declare global {
  interface Window {
    searching?: typeof searching;
  }
}

window.searching = searching;

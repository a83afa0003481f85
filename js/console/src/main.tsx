/** Start of the page: the one policy that names scripts, then the application. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { onlyOwnScripts } from "./policy";
import "./style/index.css";

onlyOwnScripts();
const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}

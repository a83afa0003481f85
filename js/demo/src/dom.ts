/** Finds and makes elements. Nothing is ever parsed as HTML. */

/** The element with this id. Throws where the page has none. */
export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`index.html has no element #${id}`);
  return found as T;
}

/** A new element with a class and what is in it. */
export function make(tag: string, className: string, ...children: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  if (className !== "") made.className = className;
  made.append(...children);
  return made;
}

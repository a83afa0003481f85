/** What an engine with all of the package does beside collections: private lookups, and the seals of writers. In the Worker. */

export { LookupEngine } from "./lookup.js";
export { WriterEngine } from "./writer.js";

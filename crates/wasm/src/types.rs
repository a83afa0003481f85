//! Types of plain objects, for the declarations beside the module: what classes here take and give that is no class.

use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &'static str = r#"
/** A record's name: text of 1 to 65535 bytes, or a 64-bit integer, a bigint beyond 2^53. */
export type Id = string | number | bigint;
/** A row of a segment. */
export interface Place { segmentId: Uint8Array; row: number }
/** A row of a segment, and its id. */
export interface NamedPlace extends Place { id: Id }
/** The ids of a segment's rows; null where a row is deleted. */
export interface SegmentRows { segmentId: Uint8Array; ids: (Id | null)[] }
/** Where a segment comes from: the owner's keys, those before a rotation, or a writer's card. */
export interface Origin { kind: "owner" | "previous" | "writer"; writer: string | null }
/** What an answer travels over. */
export interface Network { bytesPerSecond: number; roundTrip: number }
/** How rows are packed: the level, bytes of an answer, seconds that it takes. */
export interface Packing { level: number; answerBytes: number; seconds: number }
/** One query's hits, the closest first. */
export interface Answer { ids: Id[]; scores: Float64Array }
/** `exact`: whether all depends on rows and queries alone. `checked`: whether all that it rests on was held against
 * secret sums. `disqualified`: writers' segments that failed their check. */
export interface Answers { answers: Answer[]; exact: boolean; checked: boolean; disqualified: Uint8Array[] }
/** What one score says about noise that outlives it, as cosines. */
export interface Hints { row: number; key: number }
/** What a writer sealed, blobs by name. */
export interface WrittenSegment {
  id: Uint8Array; rows: number; segment: Uint8Array; sidecar: Uint8Array; records: Uint8Array | null; wrap: Uint8Array;
}
/** What a segment is, as a state covers it. Digests are BLAKE3, by name of blob. */
export interface SegmentFacts {
  segmentId: Uint8Array; rows: number; deleted: ArrayLike<number>; blobs: string[]; digests: Record<string, Uint8Array>;
}
/** What an owner says of a collection with each commit. */
export interface StateFacts {
  origin: Uint8Array; lineage: Uint8Array; begun: bigint; sequence: bigint; epoch: number; segments: number;
  segmentsDigest: Uint8Array; description: Uint8Array; evaluation: Uint8Array; keyPair: Uint8Array;
  ancestors: Uint8Array[]; aside: { segmentId: Uint8Array; rows: ArrayLike<number> }[]; routing: Uint8Array;
  consumed: Uint8Array; quarantine: Uint8Array[];
}
/** Who sealed a writer's segment, and when in milliseconds since 1970. */
export interface WrittenFacts { writer: string; time: bigint; segmentId: Uint8Array }
/** The same as read, with the key that vouches for it. */
export interface OpenedState extends StateFacts { key: string }
/** What an index rests on, and what the server learns. */
export interface SecurityStatement {
  bits: number; degree: number; logModulus: number; limit: number; table: string; assumption: string; postQuantum: boolean;
  coreSvp?: number; guidelines?: number; quantumCoreSvp?: number; model?: string; leakage: string;
}
/** Who can open shared keys. */
export interface RecipientName { name: string; fingerprint: string }
"#;

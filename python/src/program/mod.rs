//! Programs for Python: a circuit of its tracer, plans over rings that serve it, and both halves that run one.

mod planning;
mod raw;
mod running;

pub use planning::{PyProgramCandidate, PyProgramCircuit, PyProgramPlan, PyProgramRefusal};
pub use running::{PyProgramClient, PyProgramInput, PyProgramServer};

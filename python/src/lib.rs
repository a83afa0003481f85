//! The private native module: Python objects enter, the Rust core works without the GIL, Python objects leave.
#![forbid(unsafe_code)]

mod additive;
mod arrays;
mod bundle;
mod ciphertexts;
mod ckks;
mod ckks_array;
mod ckks_bench;
mod ckks_bootstrap;
mod ckks_owner;
mod digest;
mod errors;
mod filter;
mod ids;
mod keys;
mod lookup;
mod lookup_bench;
mod noise_pool;
mod opener;
mod owner;
mod packing;
mod pattern;
mod precompute;
mod probe;
mod program;
mod records;
mod runtime;
mod scheme;
mod secret_file;
mod security;
mod segment;
mod segment_directory;
#[cfg(feature = "server")]
mod serve;
mod server;
mod sharing;
mod spec;
mod state;
mod store;
mod tokens;
mod vectors;
mod writer;

use ciphervec::Scheme;
use pyo3::prelude::*;

/// The private native module of ciphervec. Use the names that `ciphervec` exports.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    runtime::check_backend()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("QUERY_VERSION", ciphervec::search::QUERY_VERSION)?;
    module.add("WORDS_VERSION", ciphervec::search::WORDS_VERSION)?;
    module.add("SCHEMES", scheme::names(module, |_| true)?)?;
    module.add("MODULUS_SCHEMES", scheme::names(module, Scheme::has_modulus)?)?;
    module.add_class::<keys::PyKeys>()?;
    module.add_class::<keys::PyEvaluationKeys>()?;
    module.add_class::<sharing::PyIdentity>()?;
    module.add_class::<sharing::PyRecipient>()?;
    module.add_class::<sharing::PySharedKeys>()?;
    module.add_class::<spec::PyIndexSpec>()?;
    module.add_class::<segment::PySealedSegment>()?;
    module.add_class::<segment_directory::PySegmentDirectory>()?;
    module.add_class::<owner::PyOwner>()?;
    module.add_class::<owner::PyOpenedSidecar>()?;
    module.add_class::<owner::PySealedQuery>()?;
    module.add_class::<opener::PyAnswerOpener>()?;
    module.add_class::<tokens::PyTokenPool>()?;
    module.add_class::<tokens::PyTokenRequest>()?;
    module.add_class::<server::PyServerIndex>()?;
    module.add_class::<writer::PyWriterCard>()?;
    module.add_class::<writer::PyWriter>()?;
    module.add_class::<pattern::PyPattern>()?;
    module.add_class::<probe::PyProbe>()?;
    module.add_class::<filter::PyFilterTags>()?;
    module.add_class::<filter::PyFilter>()?;
    module.add_class::<filter::PyTable>()?;
    module.add_function(wrap_pyfunction!(filter::why_no_row_passes, module)?)?;
    module.add_function(wrap_pyfunction!(filter::canonical, module)?)?;
    module.add_function(wrap_pyfunction!(filter::record_tags, module)?)?;
    module.add_class::<records::PyRecordBatch>()?;
    module.add_class::<store::PyStore>()?;
    module.add_class::<store::PyStagedSegments>()?;
    module.add_function(wrap_pyfunction!(server::merge_responses, module)?)?;
    module.add_class::<precompute::PyPaillierPrecompute>()?;
    module.add_class::<additive::PyAdditivePublicKey>()?;
    module.add_class::<additive::PyAdditiveSecretKey>()?;
    module.add_class::<ciphertexts::PyCiphertexts>()?;
    module.add_class::<noise_pool::PyNoisePool>()?;
    module.add_class::<ckks_owner::PyCkksOwner>()?;
    module.add_class::<ckks::PyCkksServer>()?;
    module.add_function(wrap_pyfunction!(ckks::ckks_depth, module)?)?;
    module.add_class::<ckks::PyCkksPublicKey>()?;
    module.add_class::<ckks_array::PyCkksArray>()?;
    module.add_class::<ckks_bench::PyCkksBench>()?;
    module.add_class::<ckks_bootstrap::PyCkksBootstrapper>()?;
    module.add_class::<ckks_bootstrap::PyCkksBootstrappingKeys>()?;
    module.add_class::<program::PyProgramCircuit>()?;
    module.add_class::<program::PyProgramCandidate>()?;
    module.add_class::<program::PyProgramPlan>()?;
    module.add_class::<program::PyProgramClient>()?;
    module.add_class::<program::PyProgramInput>()?;
    module.add_class::<program::PyProgramServer>()?;
    module.add_class::<lookup::PyLookupServer>()?;
    module.add_class::<lookup::PyLookupClient>()?;
    module.add_class::<lookup_bench::PyCompactLookupBench>()?;
    module.add_class::<lookup_bench::PyLookupBench>()?;
    module.add_function(wrap_pyfunction!(lookup_bench::time_small_lookup, module)?)?;
    module.add_class::<vectors::PyEncryptedVectors>()?;
    module.add_class::<vectors::PyEncryptedScores>()?;
    module.add_function(wrap_pyfunction!(vectors::additive_packing, module)?)?;
    module.add_function(wrap_pyfunction!(packing::ring_layouts, module)?)?;
    module.add_function(wrap_pyfunction!(digest::blake3, module)?)?;
    module.add_function(wrap_pyfunction!(state::state_leaf, module)?)?;
    module.add_function(wrap_pyfunction!(state::state_digest, module)?)?;
    module.add_function(wrap_pyfunction!(state::state_name, module)?)?;
    module.add_function(wrap_pyfunction!(state::state_checkpoint, module)?)?;
    module.add_function(wrap_pyfunction!(state::read_checkpoint, module)?)?;
    module.add_function(wrap_pyfunction!(state::consumed_after, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::backend, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::available_backends, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::get_threads, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::set_threads, module)?)?;
    #[cfg(feature = "server")]
    module.add_function(wrap_pyfunction!(serve::run_server, module)?)?;
    Ok(())
}

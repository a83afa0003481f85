//! The private native module: classes and functions of the Rust core for Python, which release the GIL while they work.
#![forbid(unsafe_code)]

mod additive;
mod arrays;
mod audit;
mod bundle;
mod ciphertexts;
mod ckks;
mod ckks_array;
mod ckks_bench;
mod ckks_bootstrap;
mod ckks_owner;
mod client;
mod consumed;
mod digest;
mod errors;
mod filter;
mod ids;
#[cfg(feature = "server")]
mod issuers;
mod keys;
mod known_rows;
#[cfg(feature = "server")]
mod limits;
mod lookup;
mod lookup_bench;
mod noise_pool;
mod owner;
mod packing;
mod pattern;
mod precompute;
mod probe;
mod program;
mod query;
mod receipts;
mod records;
mod runtime;
mod scheme;
mod secret_file;
mod security;
mod segment;
#[cfg(feature = "server")]
mod serve;
mod server;
mod sessions;
mod sharing;
mod spec;
mod store;
mod tokens;
mod vectors;
mod wrapped;
mod writer;

use ciphervec_owner::Scheme;
use pyo3::prelude::*;

/// The private native module of ciphervec. Use the names that `ciphervec` exports.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    runtime::check_backend()?;
    client::start();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("SCHEMES", scheme::names(module, |_| true)?)?;
    module.add("FLOODING", ciphervec_client::DEVIATION)?;
    module.add("MODULUS_SCHEMES", scheme::names(module, Scheme::has_modulus)?)?;
    module.add_class::<client::PyStorage>()?;
    module.add_class::<client::PyCallHost>()?;
    module.add_class::<client::PyClient>()?;
    module.add_class::<client::PyCollection>()?;
    module.add_class::<client::PyMembers>()?;
    module.add_class::<client::PyQuery>()?;
    module.add_class::<client::PyKeyedRecords>()?;
    module.add_class::<client::PyKeyedTable>()?;
    module.add_class::<client::PyKeyedClient>()?;
    module.add_class::<client::PyAskedKeys>()?;
    module.add_class::<client::PyRemoteTable>()?;
    module.add_class::<keys::PyKeys>()?;
    module.add_class::<keys::PyEvaluationKeys>()?;
    module.add_class::<sharing::PyIdentity>()?;
    module.add_class::<sharing::PyMemberCard>()?;
    module.add_class::<sharing::PyRecipient>()?;
    module.add_class::<sharing::PySharedKeys>()?;
    module.add_class::<wrapped::PyWrappedKeyFile>()?;
    module.add_class::<wrapped::PyKeyShare>()?;
    module.add_function(wrap_pyfunction!(client::values::check_multi, module)?)?;
    module.add_function(wrap_pyfunction!(client::values::check_tokens, module)?)?;
    module.add_function(wrap_pyfunction!(wrapped::new_file_key, module)?)?;
    module.add_function(wrap_pyfunction!(wrapped::wrap_locally, module)?)?;
    module.add_function(wrap_pyfunction!(wrapped::unwrap_locally, module)?)?;
    module.add_function(wrap_pyfunction!(wrapped::key_file_label, module)?)?;
    module.add_function(wrap_pyfunction!(audit::audit_verifying_key, module)?)?;
    module.add_function(wrap_pyfunction!(audit::verify_audit, module)?)?;
    module.add_class::<audit::PyAuditLog>()?;
    module.add_class::<spec::PyIndexSpec>()?;
    module.add_class::<segment::PySealedSegment>()?;
    module.add_class::<known_rows::PyKnownRows>()?;
    module.add_class::<known_rows::PyOpenedSidecar>()?;
    module.add_class::<owner::PyOwner>()?;
    module.add_class::<query::PySealedQuery>()?;
    module.add_class::<query::PyAnswerOpener>()?;
    module.add_class::<tokens::PyTokenPool>()?;
    module.add_class::<tokens::PyTokenRequest>()?;
    module.add_class::<server::PyServerIndex>()?;
    module.add_class::<owner::PyIndexFile>()?;
    module.add_class::<sessions::PySessionKeys>()?;
    module.add_class::<sessions::PySessionStore>()?;
    module.add_class::<writer::PyWriterCard>()?;
    module.add_class::<writer::PyWriter>()?;
    module.add_class::<pattern::PyPattern>()?;
    module.add_class::<probe::PyProbe>()?;
    module.add_class::<filter::PyFilterTags>()?;
    module.add_class::<filter::PyFilter>()?;
    module.add_class::<filter::PyTable>()?;
    module.add_function(wrap_pyfunction!(filter::canonical, module)?)?;
    module.add_class::<receipts::PyReceiptKey>()?;
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
    module.add_class::<program::PyProgramRefusal>()?;
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
    module.add_function(wrap_pyfunction!(client::check_flooding, module)?)?;
    module.add_function(wrap_pyfunction!(consumed::consumed_after, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::backend, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::available_backends, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::get_threads, module)?)?;
    module.add_function(wrap_pyfunction!(runtime::set_threads, module)?)?;
    #[cfg(feature = "server")]
    module.add_class::<issuers::PyIssuers>()?;
    #[cfg(feature = "server")]
    module.add_class::<issuers::PySubject>()?;
    #[cfg(feature = "server")]
    module.add_class::<limits::PyLimits>()?;
    #[cfg(feature = "server")]
    module.add_class::<limits::PyAccounts>()?;
    #[cfg(feature = "server")]
    module.add_class::<limits::PyEntered>()?;
    #[cfg(feature = "server")]
    module.add_class::<limits::PyAsked>()?;
    #[cfg(feature = "server")]
    module.add_function(wrap_pyfunction!(serve::run_server, module)?)?;
    Ok(())
}

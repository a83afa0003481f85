//! The security statement of an index as a plain object of public numbers.

use ciphervec_he_secret::params::COST_MODEL;
use ciphervec_owner::SecurityStatement;
use wasm_bindgen::JsValue;

use crate::arrays::object;

/// What attacks cost, in each model, is there on a lattice alone.
pub fn statement(of: &SecurityStatement) -> JsValue {
    let mut fields: Vec<(&str, JsValue)> = vec![
        ("bits", of.bits.into()),
        ("degree", of.degree.into()),
        ("logModulus", of.log_modulus.into()),
        ("limit", of.limit.into()),
        ("table", of.table.into()),
        ("assumption", of.assumption.into()),
        ("postQuantum", of.post_quantum.into()),
        ("leakage", of.leakage.into()),
    ];
    if let Some(found) = of.estimate {
        fields.extend([
            ("coreSvp", found.core_svp.into()),
            ("guidelines", found.guidelines.into()),
            ("quantumCoreSvp", found.quantum_core_svp.into()),
            ("model", COST_MODEL.into()),
        ]);
    }
    object(&fields)
}

//! What is computed and how: circuits, rings that were tried for one, and plans, which both halves of a program share.

use std::sync::Arc;

use ciphervec_he_secret::ckks::{LookupTable, Polynomial, Sign};
use ciphervec_he_secret::params::Security;
use ciphervec_owner::program::{
    Asked, Candidate, Circuit, Clear, Domain, Input, Output, Plan, Refusal, Simulated, Step,
    Undecided, View, candidates,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::raw::{
    RawAnswer, RawInput, RawOutput, RawStep, RawView, decoding, decoding_name, numbers, placement,
    raw_answers, reading, step,
};
use crate::ckks::work;
use crate::errors::{InvalidInput, Raise};

/// Why a circuit cannot be, or a ring does not serve it.
#[pyclass(name = "ProgramRefusal", module = "ciphervec._native", frozen)]
pub struct PyProgramRefusal(Refusal);

#[pymethods]
impl PyProgramRefusal {
    /// What can be done about it: the same for all of a kind.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.0 {
            Refusal::TooFine { .. } => "too_fine",
            Refusal::Signs { .. } => "signs",
            Refusal::TooNoisy { .. } => "too_noisy",
            Refusal::OverOne { .. } => "over_one",
            Refusal::Inexact { .. } => "inexact",
            Refusal::Slots { .. } => "slots",
            _ => "other",
        }
    }

    /// The output that is too far off, if that is why.
    #[getter]
    fn output(&self) -> Option<&str> {
        match &self.0 {
            Refusal::Inexact { output, .. } => Some(output),
            _ => None,
        }
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

/// A circuit, or why there is none.
#[derive(IntoPyObject)]
enum Made {
    Circuit(PyProgramCircuit),
    Refused(PyProgramRefusal),
}

/// What is computed, slot by slot.
#[pyclass(name = "ProgramCircuit", module = "ciphervec._native", frozen)]
pub struct PyProgramCircuit(Circuit);

#[pymethods]
impl PyProgramCircuit {
    /// Polynomials are Chebyshev coefficients on [−1, 1], signs the gap, the bits of their results, what inputs may be off by and
    /// whether those of later stages may be by more, tables the values of 0, 1, 2 and so on.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "the parts of a circuit")]
    fn of(
        slots: usize,
        inputs: Vec<RawInput>,
        constants: Vec<Vec<f64>>,
        polynomials: Vec<Vec<f64>>,
        signs: Vec<(f64, f64, f64, bool)>,
        tables: Vec<Vec<f64>>,
        steps: Vec<RawStep>,
        outputs: Vec<RawOutput>,
    ) -> PyResult<Made> {
        let input = |(name, public, shape, kind, views): RawInput| {
            let view = |(registers, unit, blocks, read): RawView| {
                let (placement, reading) = (placement(blocks), reading(read));
                View { registers, unit, reading, placement }
            };
            let views = views.into_iter().map(view).collect();
            Input { name, public, shape, numbers: numbers(kind), views }
        };
        let output = |(name, shape, kind, unit, registers, blocks, decoded): RawOutput| {
            let (numbers, placement) = (numbers(kind), placement(blocks));
            let decoding = decoding(&decoded)?;
            Ok(Output { name, shape, numbers, unit, registers, placement, decoding })
        };
        let steps = steps.into_iter().map(step).collect::<PyResult<_>>()?;
        let outputs = outputs.into_iter().map(output).collect::<PyResult<_>>()?;
        let polynomial = |one: Vec<f64>| Polynomial::chebyshev(-1.0, 1.0, &one);
        let sign = |(gap, alpha, noise, graded)| {
            let made = if graded { Sign::graded } else { Sign::with_noise };
            made(gap, alpha, noise)
        };
        let table = |values: Vec<f64>| LookupTable::new(&values);
        let made = || -> Result<Circuit, Refusal> {
            let circuit = Circuit {
                slots,
                inputs: inputs.into_iter().map(input).collect(),
                constants,
                polynomials: polynomials.into_iter().map(polynomial).collect::<Result<_, _>>()?,
                signs: signs.into_iter().map(sign).collect::<Result<_, _>>()?,
                tables: tables.into_iter().map(table).collect::<Result<_, _>>()?,
                steps,
                outputs,
            };
            circuit.check()?;
            Ok(circuit)
        };
        Ok(match made() {
            Ok(circuit) => Made::Circuit(PyProgramCircuit(circuit)),
            Err(refusal) => Made::Refused(PyProgramRefusal(refusal)),
        })
    }

    /// The outputs' values on plain numbers, and the largest absolute value after every step.
    fn clear<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<(Vec<RawAnswer<'py>>, Vec<f64>)> {
        let inputs: Vec<Vec<f64>> =
            inputs.iter().map(|input| Ok(input.as_slice()?.to_vec())).collect::<PyResult<_>>()?;
        let (answers, largest) = work(py, || Clear::answers(&self.0, &inputs))?;
        Ok((raw_answers(py, answers), largest))
    }

    /// Rings from the smallest on, up to the first that serves; `allowed` says how far the numbers of each
    /// output may be off, but for a chance of `2^-failure`.
    #[pyo3(signature = (allowed, *, failure, quantum=false))]
    fn candidates(
        &self,
        py: Python<'_>,
        allowed: Vec<f64>,
        failure: u8,
        quantum: bool,
    ) -> PyResult<Vec<PyProgramCandidate>> {
        let security = if quantum { Security::Quantum128 } else { Security::Classical128 };
        let asked = Asked { allowed: &allowed, failure, security };
        let tried = work(py, || candidates(&self.0, &asked))?;
        Ok(tried.into_iter().map(PyProgramCandidate).collect())
    }

    /// How far the rounding of doubles may take each output's numbers off, but for a chance of
    /// `2^-failure`.
    fn rounding(&self, failure: u8) -> PyResult<Vec<f64>> {
        self.0.rounding(failure).map_err(Raise::raise)
    }

    /// The values in as many slots as there are coefficients of a polynomial, a power of two.
    #[staticmethod]
    fn slots_of<'py>(
        py: Python<'py>,
        coefficients: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let coefficients = coefficients.as_slice()?;
        if coefficients.len() < 2 || !coefficients.len().is_power_of_two() {
            return Err(InvalidInput::new_err("a power of two of coefficients expected"));
        }
        Ok(PyArray1::from_vec(py, Domain::slots_of(coefficients)))
    }

    /// Registers of inputs that are encrypted.
    #[getter]
    fn sealed_registers(&self) -> usize {
        self.0.sealed_registers()
    }

    /// The most encrypted registers alive at a time.
    #[getter]
    fn peak(&self) -> usize {
        self.0.peak()
    }
}

/// A ring that a circuit was tried in.
#[pyclass(name = "ProgramCandidate", module = "ciphervec._native", frozen)]
pub struct PyProgramCandidate(Candidate);

#[pymethods]
impl PyProgramCandidate {
    #[getter]
    fn log_degree(&self) -> u32 {
        self.0.log_degree
    }

    /// Why it does not serve; None if it does.
    #[getter]
    fn refused(&self) -> Option<PyProgramRefusal> {
        self.0.outcome.as_ref().err().cloned().map(PyProgramRefusal)
    }

    /// Level, log2 of the error in a slot, and milliseconds of every step of the circuit that was tried,
    /// with the refreshes that follow it.
    #[getter]
    fn steps(&self) -> Vec<(usize, f64, f64)> {
        let Ok((_, trial)) = &self.0.outcome else { return Vec::new() };
        let mut found = vec![(0, 0.0, 0.0); self.origin(trial.steps.len())];
        for (place, step) in trial.steps.iter().enumerate() {
            let held: &mut (usize, f64, f64) = &mut found[self.origin(place)];
            *held = (step.level, step.error_bits, held.2 + step.milliseconds);
        }
        found
    }

    /// What it is compared with others by; None if it does not serve.
    #[getter]
    fn weight(&self) -> Option<f64> {
        self.0.weight()
    }

    /// The same, timed on this machine.
    fn timed(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(PyProgramCandidate(work(py, || self.0.clone().timed())?))
    }

    #[getter]
    fn refreshing(&self) -> bool {
        self.0.refreshing
    }

    /// How often the result of every step is refreshed; None where nothing is.
    #[getter]
    fn refreshes(&self) -> Option<Vec<usize>> {
        let refreshed = self.0.refreshed.as_ref()?;
        let mut found = vec![0; self.origin(refreshed.circuit.steps.len())];
        for (place, step) in refreshed.circuit.steps.iter().enumerate() {
            found[self.origin(place)] += usize::from(matches!(step, Step::Refresh(_)));
        }
        Some(found)
    }

    /// Whether no placement has fewer refreshes, and milliseconds of one.
    #[getter]
    fn refresh_cost(&self) -> Option<(bool, f64)> {
        self.0.refreshed.as_ref().map(|one| (one.fewest, one.milliseconds))
    }

    /// Times of the steps that are run, added up for each of the circuit that was tried.
    fn gathered(&self, times: Vec<f64>) -> Vec<f64> {
        let mut found = vec![0.0; self.origin(times.len())];
        for (place, time) in times.into_iter().enumerate() {
            found[self.origin(place)] += time;
        }
        found
    }

    /// Standard deviation of the error of every output.
    #[getter]
    fn errors(&self) -> Vec<f64> {
        let Ok((_, trial)) = &self.0.outcome else { return Vec::new() };
        trial.outputs.iter().map(|output| output.error).collect()
    }

    /// What errors of every output are within.
    #[getter]
    fn within(&self) -> Vec<f64> {
        let Ok((_, trial)) = &self.0.outcome else { return Vec::new() };
        trial.outputs.iter().map(|output| output.within).collect()
    }

    /// The level that every encrypted register of the outputs is sent at.
    #[getter]
    fn levels_sent(&self) -> Vec<usize> {
        let Ok((_, trial)) = &self.0.outcome else { return Vec::new() };
        trial.levels_sent.clone()
    }
}

/// A circuit with parameters and the list of keys that it needs.
#[pyclass(name = "ProgramPlan", module = "ciphervec._native", frozen)]
pub struct PyProgramPlan(pub(super) Arc<Plan>);

#[pymethods]
impl PyProgramPlan {
    /// A plan under the parameters of a candidate that serves. `undecided` is what the key's noise decides:
    /// 0 nothing, 1 which of near numbers is named, 2 whether there is an answer, too.
    #[new]
    #[pyo3(signature = (circuit, candidate, *, undecided = 0))]
    fn new(
        py: Python<'_>,
        circuit: &PyProgramCircuit,
        candidate: &PyProgramCandidate,
        undecided: u8,
    ) -> PyResult<Self> {
        let plan = work(py, || candidate.0.plan(&circuit.0))?;
        let undecided = match undecided {
            0 => return Ok(PyProgramPlan(Arc::new(plan))),
            1 => Undecided::Named,
            _ => Undecided::Refused,
        };
        Ok(PyProgramPlan(Arc::new(plan.with_undecided(undecided))))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Ok(PyProgramPlan(Arc::new(work(py, || Plan::from_bytes(bytes))?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    #[getter]
    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Names and shapes of the inputs.
    #[getter]
    fn inputs(&self) -> Vec<(String, Vec<u32>)> {
        let inputs = self.0.circuit().inputs.iter();
        inputs.map(|input| (input.name.clone(), input.shape.clone())).collect()
    }

    /// Names of the inputs that are sent as they are.
    #[getter]
    fn public(&self) -> Vec<&str> {
        let inputs = self.0.circuit().inputs.iter().filter(|input| input.public);
        inputs.map(|input| input.name.as_str()).collect()
    }

    /// Names, shapes, steps (0 for reals) and decodings of the outputs.
    #[getter]
    fn outputs(&self) -> Vec<(String, Vec<u32>, f64, &'static str)> {
        let outputs = self.0.circuit().outputs.iter();
        let say = |output: &Output| {
            let decoding = decoding_name(output.decoding);
            (output.name.clone(), output.shape.clone(), output.numbers.step, decoding)
        };
        outputs.map(say).collect()
    }

    /// The outputs' values on plain numbers.
    fn clear<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<Vec<RawAnswer<'py>>> {
        let inputs: Vec<Vec<f64>> =
            inputs.iter().map(|input| Ok(input.as_slice()?.to_vec())).collect::<PyResult<_>>()?;
        let (answers, _) = work(py, || Clear::answers(self.0.circuit(), &inputs))?;
        Ok(raw_answers(py, answers))
    }

    /// The outputs' values on plain numbers with the noise that is forecast; 32 bytes of a seed draw it.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        inputs: Vec<PyReadonlyArray1<'py, f64>>,
        seed: [u8; 32],
    ) -> PyResult<Vec<RawAnswer<'py>>> {
        let inputs: Vec<Vec<f64>> =
            inputs.iter().map(|input| Ok(input.as_slice()?.to_vec())).collect::<PyResult<_>>()?;
        let answers = work(py, || Simulated::of(&self.0, seed, &inputs))?;
        Ok(raw_answers(py, answers))
    }

    /// Bytes of all inputs.
    #[getter]
    fn input_bytes(&self) -> usize {
        self.0.circuit().inputs.iter().map(|input| self.0.input_bytes(input)).sum()
    }

    /// Bytes of an answer whose encrypted registers are sent at these levels.
    fn answer_bytes(&self, levels: Vec<usize>) -> usize {
        self.0.answer_bytes(&levels)
    }

    #[getter]
    fn key_bytes(&self) -> PyResult<usize> {
        self.0.key_bytes().map_err(Raise::raise)
    }

    /// log2 of one over the chance that an answer is wrong or refused, as whoever made it says; 0 if
    /// nothing is said.
    #[getter]
    fn failure(&self) -> u8 {
        self.0.failure()
    }

    #[getter]
    fn undecided(&self) -> u8 {
        self.0.undecided() as u8
    }

    #[getter]
    fn security(&self) -> String {
        let says = self.0.params().security();
        format!("{} bits by {}", says.bits, says.table)
    }

    /// log2 of the degree, of the whole modulus rounded up, levels and bits of the scale; of a plan that
    /// refreshes registers, levels from one refresh to the next.
    #[getter]
    fn parameters(&self) -> (u32, u32, usize, u32) {
        let params = self.0.params();
        let spec = params.spec();
        let levels = self.0.bootstrapper().map_or(spec.levels, |one| one.spec().levels);
        (spec.log_degree, params.log_key_modulus(), levels, spec.scale_bits)
    }

    /// How many registers a run looks tables up for.
    #[getter]
    fn look_ups(&self) -> usize {
        self.0.circuit().look_ups()
    }

    /// How often integers are cleaned before they are looked up, at most.
    #[getter]
    fn cleanings(&self) -> usize {
        self.0.circuit().cleanings()
    }

    /// Of a plan that refreshes registers: how often a run does, bits of precision, bytes of the keys and
    /// log2 of the chance that one loses a slot.
    #[getter]
    fn refreshing(&self) -> PyResult<Option<(usize, f64, usize, f64)>> {
        let Some(bootstrapper) = self.0.bootstrapper() else { return Ok(None) };
        let plan =
            bootstrapper.plan().map_err(ciphervec_owner::Error::from).map_err(Raise::raise)?;
        let refreshes = self.0.circuit().refreshes();
        Ok(Some((refreshes, plan.precision_bits, plan.key_bytes, plan.failure_log2)))
    }
}

impl PyProgramCandidate {
    /// The step of the circuit that was tried which a step that is run belongs to; beyond the last, how
    /// many there are.
    fn origin(&self, place: usize) -> usize {
        let Some(refreshed) = &self.0.refreshed else { return place };
        let most = || refreshed.origins.iter().max().map_or(0, |last| last + 1);
        refreshed.origins.get(place).copied().unwrap_or_else(most)
    }
}

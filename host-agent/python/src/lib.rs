//! The native half of the Python package `weir`: a rank of an all-reduce (`host_agent::collective`).
//!
//! Values come and go by address: the Python half owns the tensors, and keeps them until it has waited.
#![allow(unsafe_code)]

mod link;
mod memory;
mod rank;

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aggregation::rank::{
    DROPS, EXACT_VALUES, LAYOUT, Reduction, Rounding, Share, Sums as RankSums, Terms, Values, bf16,
    f16,
};
use host_agent::collective::CollectiveError;
use host_agent::frames::Io;
use host_agent::metrics::Exporter;
use host_agent::serve::Kind;
use link::{Awaited, Link};
use memory::{Spare, copied, put, put_bytes, words};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use rank::Rank;

pyo3::create_exception!(
    weir,
    NonFinite,
    PyRuntimeError,
    "Some rank's values held NaN or infinity: the operation has no sums, at any rank."
);

pyo3::create_exception!(
    weir,
    Silent,
    PyRuntimeError,
    "No switch answers for the job."
);

/// A rank of a job, on an Ethernet interface. Nobody is kept from closing it by what other threads ask meanwhile.
#[pyclass(frozen)]
struct Member {
    /// `None` once it was closed.
    member: Mutex<Option<Arc<Link>>>,
    ranks: u16,
    rounding: Rounding,
    spare: Arc<Spare>,
    /// How frames come and go.
    io: Io,
    /// Why not by rings.
    refused: Option<String>,
    /// Shows what it counts.
    exporter: Mutex<Option<Exporter>>,
}

/// What is written to Python's memory when an operation is done.
#[derive(Clone, Copy)]
enum Writes {
    Sums,
    /// The words of a broadcast, which are bytes of whatever type.
    Bytes,
    Nothing,
}

/// Sums that are to come.
#[pyclass]
struct Sums {
    pending: Mutex<Option<Awaited>>,
    writes: Writes,
    spare: Arc<Spare>,
    ranks: u16,
}

#[pymethods]
impl Member {
    /// Sums values over all ranks, or averages them: `length` of this type from `address` on, which are copied before this
    /// returns. What of them is late joins the next sum of the same `key`, if that is wanted. A rank that does not take the sums
    /// only gives its values; `root` is who does, if not all. They are a piece of a tensor of `whole` values, if that says so.
    #[pyo3(signature = (address, length, dtype, average, key = None, takes = true, root = None, whole = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn all_reduce(
        &self,
        py: Python<'_>,
        address: usize,
        length: usize,
        dtype: &str,
        average: bool,
        key: Option<u64>,
        takes: bool,
        root: Option<u16>,
        whole: Option<u64>,
    ) -> PyResult<Sums> {
        // SAFETY: the caller says that `length` values of this type stand there, and holds on to them meanwhile: Python's
        // lock is held. Any bits are a value of each of these types.
        let values = unsafe {
            match dtype {
                "float32" => Values::Floats(copied(address, length, self.spare.take(length))?),
                "float16" => Values::Float16s(copied::<f16>(address, length, Vec::new())?),
                "bfloat16" => Values::Bfloat16s(copied::<bf16>(address, length, Vec::new())?),
                "int32" => Values::Integers(copied::<i32>(address, length, Vec::new())?),
                "int8" => Values::Int8s(copied::<i8>(address, length, Vec::new())?),
                _ => {
                    let told = format!(
                        "{dtype} is not summed: float32, float16, bfloat16, int32 and int8 are"
                    );
                    return Err(PyValueError::new_err(told));
                }
            }
        };
        let (share, writes) = match takes {
            true => (Share::GivesAndTakes, Writes::Sums),
            false => (Share::Gives, Writes::Nothing),
        };
        let whole = whole.unwrap_or(length as u64);
        let deed = if average { "average" } else { "sum" };
        let reduction = Reduction {
            average,
            exact: whole <= EXACT_VALUES as u64,
            rounding: self.rounding,
            key,
            share,
            terms: Some(Terms::named(dtype, deed, root, whole)),
        };
        self.begin(py, values, reduction, writes)
    }

    /// Gives all other ranks these bytes, which are copied before this returns: so many elements of that type, of the rank `root`,
    /// which is this one. They are the only ones in a sum of zeros, and so come as they are.
    fn broadcast(
        &self,
        py: Python<'_>,
        address: usize,
        bytes: usize,
        dtype: &str,
        length: u64,
        root: u16,
    ) -> PyResult<Sums> {
        // SAFETY: the caller says that so many bytes stand there, and holds on to them meanwhile: Python's lock is held.
        let values = Values::Integers(unsafe { words(address, bytes)? });
        let reduction = Reduction {
            share: Share::Gives,
            terms: Some(Terms::named(dtype, "broadcast", Some(root), length)),
            ..Reduction::default()
        };
        self.begin(py, values, reduction, Writes::Nothing)
    }

    /// Takes so many bytes, elements of that type, of the rank `root`, which gives them.
    fn receive(
        &self,
        py: Python<'_>,
        bytes: usize,
        dtype: &str,
        length: u64,
        root: u16,
    ) -> PyResult<Sums> {
        let reduction = Reduction {
            share: Share::Takes,
            terms: Some(Terms::named(dtype, "broadcast", Some(root), length)),
            ..Reduction::default()
        };
        let values = Values::Integers(vec![0; bytes.div_ceil(size_of::<i32>())]);
        self.begin(py, values, reduction, Writes::Bytes)
    }

    /// Says what this rank gives to an operation that is done by other means. Waiting for it fails at all ranks if they do not
    /// say the same, or some have given their values to the switch.
    #[pyo3(signature = (dtype, deed, length, root = None))]
    fn compare(
        &self,
        py: Python<'_>,
        dtype: &str,
        deed: &str,
        length: u64,
        root: Option<u16>,
    ) -> PyResult<Sums> {
        let reduction = Reduction {
            share: Share::Compares,
            terms: Some(Terms::named(dtype, deed, root, length)),
            ..Reduction::default()
        };
        self.begin(py, Values::Integers(vec![0]), reduction, Writes::Nothing)
    }

    /// By which way frames come and go: `rings` or `pnet`.
    #[getter]
    fn io(&self) -> String {
        self.io.to_string()
    }

    /// Why it is not `rings` that they come and go by, where these were wanted.
    #[getter]
    fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// So many operations may be given and not answered, waited for or not; the call that gives one more waits until one is.
    #[getter]
    fn operations(&self) -> u64 {
        self.link().map_or(0, |link| link.operations())
    }

    /// How often the switch fell silent, so that ranks summed themselves. A daemon tells it with each sum.
    #[getter]
    fn fallbacks(&self) -> u64 {
        self.link().map_or(0, |link| link.fallbacks())
    }

    /// Leaves the job: what has no sums yet fails.
    fn close(&self, py: Python<'_>) {
        // The thread may stay a moment for what others have missed.
        py.detach(|| {
            let link = taken(&self.member);
            if let Some(link) = &link {
                // Before: the exporter may be asking it.
                link.close();
            }
            drop((taken(&self.exporter), link));
        });
    }

    /// The descriptors by which this is a rank. A process that is forked closes them, and touches nothing else of this, not even to
    /// drop it.
    #[getter]
    fn descriptors(&self) -> Vec<RawFd> {
        let link = self.member.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = self.exporter.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = shown.as_ref().map(Exporter::descriptor);
        let of_link = link.as_ref().map(|link| link.descriptors());
        of_link.into_iter().flatten().chain(shown).collect()
    }

    /// Where it shows what it counts.
    #[getter]
    fn metrics(&self) -> Option<String> {
        let exporter = self.exporter.lock().unwrap_or_else(PoisonError::into_inner);
        exporter.as_ref().map(|shown| shown.address().to_string())
    }

    /// Operations that have their sums, and those that have none for a value that is not finite; frames, bytes, frames sent
    /// again, probes, chunks whose exponent was guessed wrongly, timeouts; how often the switch fell silent, and was there again,
    /// and chunks that hosts have summed meanwhile. Then, of deadlines: chunks whose sum is of fewer than all; those without this
    /// rank's values, and those with its values cut off; those of both kinds of which nothing joins another sum; sums that what
    /// was late has joined, and those that it should have and could not; chunks that this rank closed, and those of which the
    /// switch had forgotten whether they were.
    fn counters(&self, py: Python<'_>) -> PyResult<[(&'static str, u64); 19]> {
        // A daemon may take its time to answer.
        let counters = py.detach(|| self.link().map(|link| link.counters()).transpose());
        let counters = counters.map_err(told)?.unwrap_or_default();
        Ok([
            ("operations", counters.operations),
            ("non_finite", counters.non_finite),
            ("frames", counters.sent.frames),
            ("bytes", counters.sent.bytes),
            ("frames_again", counters.sent.retransmitted_frames),
            ("probes", counters.probes),
            ("guessed_again", counters.repeated_guesses),
            ("timeouts", counters.timeouts),
            ("fallbacks", counters.fallbacks),
            ("returns", counters.returns),
            ("chunks_by_hosts", counters.by_hosts),
            ("partial", counters.partial_chunks),
            ("late", counters.late_chunks),
            ("clipped", counters.clipped_chunks),
            ("dropped", counters.dropped_chunks),
            ("carried", counters.carried),
            ("lost", counters.lost_residuals),
            ("closed", counters.closes),
            ("forgotten", counters.forgotten),
        ])
    }
}

#[pymethods]
impl Sums {
    /// Waits, and writes the sums to `address`, where there is room for `length` values of the type that was given, or for the
    /// bytes of a broadcast; nothing where the rank takes none. Gives what they are off by at most, and of how many ranks the part
    /// is that has the fewest.
    fn wait(
        &self,
        py: Python<'_>,
        address: usize,
        length: usize,
        seconds: f64,
    ) -> PyResult<(f64, u16)> {
        let pending = self
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let pending =
            pending.ok_or_else(|| PyRuntimeError::new_err("these sums were waited for before"))?;
        let timeout = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let sums = py.detach(|| pending.wait(timeout)).map_err(told)?;
        let contributors = self.fewest(&sums);
        // SAFETY: the caller says that there is room for `length` values of this type there, which nobody else touches.
        unsafe {
            match (self.writes, &sums.values) {
                (Writes::Nothing, _) => {}
                (Writes::Bytes, Values::Integers(words)) => put_bytes(words, address, length)?,
                (_, Values::Floats(values)) => put(values, address, length)?,
                (_, Values::Float16s(values)) => put(values, address, length)?,
                (_, Values::Bfloat16s(values)) => put(values, address, length)?,
                (_, Values::Integers(values)) => put(values, address, length)?,
                (_, Values::Int8s(values)) => put(values, address, length)?,
            }
        }
        if let Values::Floats(values) = sums.values {
            self.spare.give(values);
        }
        Ok((sums.error_bound, contributors))
    }
}

/// What is there no more afterwards.
fn taken<T>(of: &Mutex<Option<T>>) -> Option<T> {
    of.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Member {
    /// `None` once it was closed.
    fn link(&self) -> Option<Arc<Link>> {
        let member = self.member.lock();
        member.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn begin(
        &self,
        py: Python<'_>,
        values: Values,
        reduction: Reduction,
        writes: Writes,
    ) -> PyResult<Sums> {
        // By a daemon it waits if very many have no sums yet, which other threads wait for.
        let pending = py.detach(|| {
            let link = self.link().ok_or(CollectiveError::Closed)?;
            link.all_reduce_as(values, reduction)
        });
        let pending = pending.map_err(told)?;
        Ok(Sums {
            pending: Mutex::new(Some(pending)),
            writes,
            spare: Arc::clone(&self.spare),
            ranks: self.ranks,
        })
    }
}

impl Sums {
    fn fewest(&self, sums: &RankSums) -> u16 {
        let partial = sums.partial.iter();
        let counts = partial.map(|partial| partial.contributors.len() as u16);
        counts.min().unwrap_or(self.ranks)
    }
}

fn told(error: CollectiveError) -> PyErr {
    match error {
        CollectiveError::Agent { kind, ref text } => match kind {
            Kind::NonFinite => NonFinite::new_err(text.clone()),
            Kind::Silent => Silent::new_err(text.clone()),
            Kind::Io => PyOSError::new_err(text.clone()),
            Kind::Refused | Kind::Failed => PyRuntimeError::new_err(text.clone()),
        },
        CollectiveError::Timeout { .. } | CollectiveError::Late { .. } => {
            PyTimeoutError::new_err(error.to_string())
        }
        CollectiveError::Opening(_) | CollectiveError::Unregistered { .. } => {
            Silent::new_err(error.to_string())
        }
        CollectiveError::NonFinite(_) => NonFinite::new_err(error.to_string()),
        CollectiveError::Io(_) | CollectiveError::Link(_) | CollectiveError::Rdma(_) => {
            PyOSError::new_err(error.to_string())
        }
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// `weir._native`.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Rank>()?;
    module.add_class::<Member>()?;
    module.add_class::<Sums>()?;
    // Ranks of other versions may send other frames.
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("LAYOUT", LAYOUT)?;
    module.add("EXACT_VALUES", EXACT_VALUES)?;
    module.add("DROPS", DROPS)?;
    module.add("Silent", module.py().get_type::<Silent>())?;
    module.add("NonFinite", module.py().get_type::<NonFinite>())
}

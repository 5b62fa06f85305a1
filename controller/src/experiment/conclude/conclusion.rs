//! The results that the evidence of a run proves.

use std::collections::BTreeMap;

use proof::{FlowCount, Loss, Proof, Recovery, Throughput};

use super::disruptions::DisruptionResult;
use super::evidence::Evidence;
use super::faults::FaultResult;
use super::triggers::TriggerResult;
use crate::experiment::Planned;

/// The results that captures and counters of a run prove.
#[derive(Debug, Default)]
pub struct Conclusion {
    /// Result of each packet fault, in declared order.
    pub faults: Vec<FaultResult>,
    /// Result of each fault of a program or a switch, in declared order.
    pub disruptions: Vec<DisruptionResult>,
    /// Result of each trigger, in declared order.
    pub triggers: Vec<TriggerResult>,
    /// Number of frames sent and received, by flow name.
    pub flows: BTreeMap<String, FlowCount>,
    /// Name of each declared flow, and its throughput over time.
    pub throughput: Vec<(String, Throughput)>,
    /// Frames that passed a switch but are missing in the evidence; faults of this switch are then not proved.
    pub losses: Vec<Loss>,
    /// How RDMA connections recovered from faults: one entry for each data packet that a fault took away.
    pub recoveries: Vec<Recovery>,
    /// For each injection of the plan (a fault on a flow): number of the flow's frames that arrived while the fault was armed.
    pub met: Vec<u64>,
}

impl Conclusion {
    /// Judges each fault and trigger by `proof`, the judgment of the captured frames, and by the counts of the switches.
    pub fn from_proof(planned: &Planned, evidence: &Evidence, proof: Proof) -> Conclusion {
        let scenario = &planned.scenario;
        let faults = scenario.faults.iter();
        Conclusion {
            faults: faults
                .map(|fault| FaultResult::judge(planned, fault, &proof, evidence))
                .collect(),
            disruptions: scenario
                .disruptions
                .iter()
                .map(|disruption| DisruptionResult::judge(planned, disruption, evidence, &proof))
                .collect(),
            triggers: TriggerResult::all(planned, &proof, evidence),
            met: proof.observations.iter().map(|seen| seen.met).collect(),
            flows: proof.flows,
            throughput: proof.throughput,
            losses: proof.losses,
            recoveries: proof.recoveries,
        }
    }
}

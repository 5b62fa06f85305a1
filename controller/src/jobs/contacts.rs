//! Table entries with which a switch sums RoCEv2 frames of a job: the queue pair of each worker, and the worker's port.

use std::net::Ipv4Addr;

use p4lang::runtime::TableEntry;
use scenario::model::topology::Mac;
use scenario::plan::names::roce;

use super::entries::exact;

/// Addresses of a worker that sends its values by RoCEv2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contact {
    /// Number of the worker's queue pair in the switch's registers, unique on the switch.
    pub number: u32,
    /// The port that the worker is behind.
    pub port: u32,
    /// Ethernet address of the worker.
    pub mac: Mac,
    /// IP address of the worker.
    pub ip: Ipv4Addr,
}

/// Table entries with which the switch sums a job whose workers send values by RoCEv2; `workers` are in order of worker number.
pub fn entries(job: u16, window: u32, workers: &[Contact]) -> Vec<TableEntry> {
    let number = u128::from(job);
    let params = [(roce::JOB, number), (roce::WINDOW, u128::from(window))];
    let address = [(roce::KEY_ADDRESS, Mac::of_sum(job).value())];
    let mut entries = vec![exact(roce::JOBS, &address, roce::SUMS, &params)];
    let all_workers = (1_u128 << workers.len()) - 1;
    for (worker, contact) in (0_u16..).zip(workers) {
        let port = u128::from(contact.port);
        let key = [
            (roce::KEY_QPN, roce::qpn(job, worker).into()),
            (roce::KEY_PORT, port),
        ];
        let params = [(roce::JOB, number), (roce::WORKER, worker.into())];
        entries.push(exact(roce::SENDERS, &key, roce::SPEAKS, &params));
        let params = [
            (roce::CONTACT, contact.number.into()),
            (roce::MAC, contact.mac.value()),
            (roce::IP, contact.ip.to_bits().into()),
            (roce::ALL_WORKERS, all_workers),
        ];
        let its_copy = (u128::from(worker) + 1, Mac::of_job(job));
        for (copy, addressed) in [its_copy, (0, contact.mac)] {
            let key = [
                (roce::KEY_JOB, number),
                (roce::KEY_COPY, copy),
                (roce::KEY_ADDRESSED, addressed.value()),
                (roce::KEY_PORT, port),
            ];
            entries.push(exact(roce::WORKERS, &key, roce::REACHES, &params));
        }
    }
    entries
}

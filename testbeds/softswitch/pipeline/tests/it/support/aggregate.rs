//! p4src's program with its aggregation job, and its frames.
#![allow(dead_code, missing_docs)]

use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry};
use parser_gen::{Arch, FrameValues};
use pipeline::{Config, Switch};
use std::sync::Arc;

pub const WORKERS: u32 = 8;
pub const WINDOW: u32 = 64;
pub const VALUES: usize = 256;
pub const SERVER_PORT: u32 = 100;
pub const JOB: u16 = 7;
const SERVER_MAC: u64 = 0x0200_0000_00aa;

pub const UPDATE: u8 = 1;
pub const SUM: u8 = 2;
pub const AGAIN: u8 = 2;
pub const VERSION_FLAG: u8 = 0x80;

/// The program, with flows for the given filters.
pub fn program(filters: &[&str]) -> Arc<p4lang::ir::Program> {
    program_for(Arch::Psa, filters)
}

/// The program for an architecture.
pub fn program_for(arch: Arch, filters: &[&str]) -> Arc<p4lang::ir::Program> {
    program_of(arch, FrameValues::default(), filters)
}

/// The program for frames of this size.
pub fn program_of(arch: Arch, values: FrameValues, filters: &[&str]) -> Arc<p4lang::ir::Program> {
    let library = parser_gen::Library::builtin();
    let flows: Vec<_> = filters
        .iter()
        .enumerate()
        .map(|(i, text)| parser_gen::Flow {
            name: format!("flow_{i}"),
            filter: parser_gen::Filter::parse(&library, text).unwrap_or_else(|e| panic!("{e}")),
        })
        .collect();
    let options = parser_gen::Options {
        aggregate: Some(values),
        ..Default::default()
    };
    let generated =
        parser_gen::generate(&library, &flows, &options).unwrap_or_else(|e| panic!("{e}"));
    let mut files = p4lang::Files::new();
    for (path, text) in parser_gen::program(arch, &generated) {
        files.insert(&path, text);
    }
    let path = arch.main_path();
    match p4lang::compile(&files, &path, &p4lang::Options::default()) {
        Ok(compiled) => Arc::new(compiled.program),
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

/// The loaded program, with the job's workers at ports 0 … 7, and the server behind its own port.
pub fn switch(config: Config) -> Switch {
    switch_for(Arch::Psa, config)
}

/// The loaded program for an architecture.
pub fn switch_for(arch: Arch, config: Config) -> Switch {
    switch_of(arch, FrameValues::default(), config)
}

/// The loaded program for frames of this size.
pub fn switch_of(arch: Arch, values: FrameValues, config: Config) -> Switch {
    let program = program_of(arch, values, &[]);
    let mut switch = Switch::new(program, config).unwrap_or_else(|e| panic!("{e}"));
    let write = |switch: &mut Switch,
                 table: &str,
                 key: &[(&str, u128)],
                 action: &str,
                 params: &[(&str, u128)]| {
        let entry = TableEntry {
            table: format!("SwitchIngress.{table}"),
            key: key
                .iter()
                .map(|(f, v)| FieldMatch {
                    field: (*f).into(),
                    value: Match::exact(*v),
                })
                .collect(),
            priority: 0,
            action: ActionCall {
                name: format!("SwitchIngress.{action}"),
                params: params
                    .iter()
                    .map(|(n, v)| ((*n).into(), (*v).into()))
                    .collect(),
            },
        };
        switch
            .insert_entry(&entry)
            .unwrap_or_else(|e| panic!("{table}: {e}"));
    };
    let job = ("hdr.agg.job", u128::from(JOB));
    let all = (1u128 << WORKERS) - 1;
    write(
        &mut switch,
        "aggregate.jobs",
        &[job],
        "aggregate.aggregate_job",
        &[
            ("all_workers_", all),
            ("base_", 0),
            ("window_", WINDOW.into()),
            ("slot_mask_", u128::from(WINDOW) - 1),
        ],
    );
    for w in 0..u128::from(WORKERS) {
        let key = [
            job,
            ("hdr.agg.worker", w),
            ("hdr.agg.probe", 0),
            ("meta.port", w),
        ];
        write(
            &mut switch,
            "aggregate.members",
            &key,
            "aggregate.member",
            &[("worker_bit_", 1 << w)],
        );
    }
    let server = [("hdr.ethernet.dst", u128::from(SERVER_MAC))];
    write(
        &mut switch,
        "forward.mac",
        &server,
        "forward.unicast",
        &[("port", SERVER_PORT.into())],
    );
    switch
}

/// An UPDATE frame (docs/protocol.md).
pub fn update(worker: u32, chunk: u32, values: &[u32]) -> Vec<u8> {
    let slot = chunk % WINDOW;
    let flags = if chunk / WINDOW % 2 == 1 {
        VERSION_FLAG
    } else {
        0
    };
    let payload = 24 + 4 * values.len();
    let mut f = SERVER_MAC.to_be_bytes()[2..].to_vec();
    f.extend([2, 0, 0, 0, 0, worker as u8, 0x08, 0x00]);
    f.extend([0x45, 0]);
    f.extend((28 + payload as u16).to_be_bytes());
    f.extend([
        0,
        0,
        0x40,
        0,
        64,
        17,
        0,
        0,
        10,
        0,
        0,
        worker as u8,
        10,
        0,
        1,
        1,
    ]);
    f.extend([0x30, 0x39, 0x57, 0x45]);
    f.extend((8 + payload as u16).to_be_bytes());
    f.extend([0xbe, 0xef]);
    f.extend([2 << 4 | UPDATE, flags]);
    f.extend(JOB.to_be_bytes());
    f.extend(chunk.to_be_bytes());
    f.extend((slot as u16).to_be_bytes());
    f.extend((worker as u16 * 64).to_be_bytes());
    f.extend((1u64 << worker).to_be_bytes());
    f.extend([128, 120 + worker as u8]);
    f.extend((values.len() as u16).to_be_bytes());
    for value in values {
        f.extend(value.to_be_bytes());
    }
    f
}

/// The values that worker `w` sends in a chunk.
pub fn values(w: u32, chunk: u32) -> Vec<u32> {
    values_of(VALUES, w, chunk)
}

/// The values that worker `w` sends in a chunk of `count` values.
pub fn values_of(count: usize, w: u32, chunk: u32) -> Vec<u32> {
    (0..count as u32)
        .map(|i| {
            (w + 1)
                .wrapping_mul(0x9e37_79b9)
                .wrapping_mul(chunk ^ i.wrapping_mul(77))
        })
        .collect()
}

/// Kind, flags, chunk, contributors, next scale, values of an aggregation frame.
pub struct Answer {
    pub kind: u8,
    pub flags: u8,
    pub chunk: u32,
    pub contributors: u64,
    pub next_scale: u8,
    pub values: Vec<u32>,
}

pub fn read(frame: &[u8]) -> Answer {
    let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes"));
    let agg = 42;
    Answer {
        kind: frame[agg] & 15,
        flags: frame[agg + 1],
        chunk: word(agg + 4),
        contributors: u64::from(word(agg + 12)) << 32 | u64::from(word(agg + 16)),
        next_scale: frame[agg + 21],
        values: (agg + 24..frame.len()).step_by(4).map(word).collect(),
    }
}

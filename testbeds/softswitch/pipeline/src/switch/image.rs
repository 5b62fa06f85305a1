//! A program that is compiled once, and the switches created from it.
//!
//! Most of the time of a load is spent compiling. A switch created from an image shares its code and has its own state,
//! which is initially that of the program: registers and entries as in the source, random numbers from the config's seed.

use crate::arch::core::Core;
use crate::arch::{self, Loaded};
use crate::compile::{Compiler, Wanted};
use crate::config::{Config, Executor};
use crate::error::LoadError;
use crate::externs::filter::Filter;
use crate::externs::register::Info;
use crate::reference::Reference;
use crate::stale_fields;
use crate::state::State;
use crate::switch::Switch;
use crate::switch::control::Names;
use crate::table::Table;
use p4lang::ir::Program;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A compiled program and its initial state, from which switches are created.
#[derive(Debug)]
pub struct Image {
    compiled: Compiled,
    state: State,
    /// The value of [`Config::trace`] on which the compiled code depends.
    trace: bool,
    max_steps: u32,
}

/// The parts of a loaded program that neither packets nor the control plane change.
#[derive(Debug, Clone)]
struct Compiled {
    program: Arc<Program>,
    /// The program before `stale_fields` rewrote it, for [`Config::poison`].
    written: Arc<Program>,
    arch: Arc<Loaded>,
    names: Arc<Names>,
    registers: Arc<[Info]>,
}

impl Image {
    /// Compiles a program for switches. The code depends on [`Config::trace`] and [`Config::max_steps`].
    pub fn new(written: Arc<Program>, config: &Config) -> Result<Image, LoadError> {
        let program = stale_fields::checked(&written);
        let dialect = arch::dialect(&program.arch)?;
        let wanted = Wanted {
            seed: config.seed,
            trace: config.trace,
            max_steps: config.max_steps,
        };
        let compiler = Compiler::new(&program, dialect, wanted)?;
        let (arch, state, registers) = Loaded::load(&program, compiler)?;
        Ok(Image {
            compiled: Compiled {
                arch: Arc::new(arch),
                names: Arc::new(Names::new(&state, &registers)),
                registers: registers.into(),
                program,
                written,
            },
            state,
            trace: config.trace,
            max_steps: config.max_steps,
        })
    }

    /// Creates a switch like [`Switch::new`] from the image. Compiles the program again if the config requires other code.
    pub fn switch(&self, config: Config) -> Result<Switch, LoadError> {
        if (config.trace, config.max_steps) != (self.trace, self.max_steps) {
            return Switch::new(Arc::clone(&self.compiled.written), config);
        }
        let mut state = self.state.clone();
        let filters = state.cells.filters.iter_mut().map(Filter::random_mut);
        for random in state.randoms.iter_mut().chain(filters) {
            random.reseed(config.seed);
        }
        Ok(self.compiled.clone().switch(state, config))
    }
}

impl Switch {
    /// Compiles a program and creates a switch that runs it.
    pub fn new(program: Arc<Program>, config: Config) -> Result<Switch, LoadError> {
        let image = Image::new(program, &config)?;
        Ok(image.compiled.switch(image.state, config))
    }
}

impl Compiled {
    fn switch(self, state: State, config: Config) -> Switch {
        let Compiled {
            program,
            written,
            arch,
            names,
            registers,
        } = self;
        let code = arch.code();
        let mut frame = vec![0; code.frame as usize];
        frame[..code.constants.len()].copy_from_slice(&code.constants);
        let ages = |(_, t): &(usize, &Table)| t.spec.idle_timeout;
        let idle_tables = state.tables.iter().enumerate().filter(ages);
        let idle_tables = idle_tables.map(|(i, _)| i).collect();
        let interpreted = arch.interpreted();
        let reference = match config.executor {
            Executor::Fast => None,
            Executor::Reference => Some((interpreted, config.poison)),
            Executor::Both => Some((interpreted, None)),
        };
        let reference = reference.map(|(dialect, poison)| {
            let program = if poison.is_some() { &written } else { &program };
            Reference::new(Arc::clone(program), dialect, poison)
        });
        let mut core = Core::new(config, frame, state);
        core.reference = reference.map(Box::new);
        arch.prepare(&mut core);
        Switch {
            core,
            names,
            registers,
            undo: None,
            notes: BTreeMap::new(),
            idle_tables,
            idle: VecDeque::new(),
            idle_lost: 0,
            program,
            arch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4lang::runtime::{CloneSession, MulticastGroup, Replica};

    fn program(text: &str) -> Arc<Program> {
        let files = p4lang::Files::new().with("a.p4", text);
        let compiled = p4lang::compile(&files, "a.p4", &p4lang::Options::default());
        Arc::new(compiled.unwrap_or_else(|e| panic!("{e}")).program)
    }

    /// The next word of a seeded sequence.
    fn next(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *seed >> 33
    }

    /// Runs packets, time and writes of all kinds; returns the packets that left.
    fn play(switch: &mut Switch, mut seed: u64) -> Vec<(u32, Vec<u8>)> {
        let seed = &mut seed;
        let mut left = Vec::new();
        for step in 0..150u64 {
            let now_ns = step * 7_000;
            let small = |seed: &mut u64| next(seed) % 4;
            match next(seed) % 12 {
                0 => {
                    for register in switch.registers().to_vec() {
                        let fields: Vec<_> = register.widths.iter().map(|_| 1.into()).collect();
                        let _ = switch.register_write(&register.name, small(seed), &fields);
                    }
                }
                1 => {
                    let tables: Vec<_> = switch.tables().cloned().collect();
                    for table in tables {
                        let Some(action) = table.actions.iter().find(|a| a.params.is_empty())
                        else {
                            continue;
                        };
                        let call = p4lang::runtime::ActionCall {
                            name: action.name.clone(),
                            params: Vec::new(),
                        };
                        let _ = switch.set_default_action(&table.name, Some(&call));
                    }
                }
                2 => {
                    let replicas = (0..3).map(|_| Replica {
                        port: small(seed) as u32,
                        instance: next(seed) as u16,
                    });
                    let replicas: Vec<_> = replicas.collect();
                    let id = 1 + small(seed) as u32;
                    let group = MulticastGroup {
                        id,
                        replicas: replicas.clone(),
                    };
                    let _ = switch.set_multicast_group(&group);
                    let _ = switch.set_clone_session(&CloneSession {
                        id,
                        replicas,
                        class_of_service: 0,
                        packet_length_bytes: 0,
                    });
                }
                3 => switch.handle_timeout(now_ns),
                _ => {
                    let length = next(seed) % 90;
                    let byte = |seed: &mut u64| match next(seed) % 3 {
                        0 => next(seed) as u8,
                        _ => small(seed) as u8,
                    };
                    let frame: Vec<u8> = (0..length).map(|_| byte(seed)).collect();
                    switch.handle_packet(now_ns, small(seed) as u32, &frame);
                }
            }
            left.extend(std::iter::from_fn(|| switch.poll_transmit()).map(|t| (t.port, t.bytes)));
        }
        left
    }

    #[test]
    fn a_switch_of_an_image_is_as_one_that_is_loaded() {
        let texts = [
            include_str!("../../fuzz/programs/psa.p4"),
            include_str!("../../../tests/support/everything.p4"),
            include_str!("../../fuzz/programs/v1model.p4"),
            include_str!("../../fuzz/programs/tna.p4"),
        ];
        let mut packets = 0;
        for text in texts {
            let program = program(text);
            let config = |seed| Config {
                seed,
                ..Config::default()
            };
            // The image has another seed.
            let image = Image::new(Arc::clone(&program), &config(99)).expect("a program");
            for seed in 0..2 {
                let mut fresh = Switch::new(Arc::clone(&program), config(seed)).expect("a program");
                let mut made = image.switch(config(seed)).expect("a program");
                assert_eq!(format!("{:?}", fresh.core), format!("{:?}", made.core));
                let left = play(&mut fresh, seed);
                packets += left.len();
                assert_eq!(left, play(&mut made, seed));
                assert_eq!(format!("{:?}", fresh.core), format!("{:?}", made.core));
            }
        }
        assert!(packets > 500, "{packets}");
    }

    #[test]
    fn settings_in_the_code_are_compiled_again() {
        let program = program(include_str!("../../fuzz/programs/psa.p4"));
        let image = Image::new(program, &Config::default()).expect("a program");
        let traced = Config {
            trace: true,
            ..Config::default()
        };
        let mut switch = image.switch(traced).expect("a program");
        switch.handle_packet(0, 0, &[0; 64]);
        assert!(!switch.take_trace().is_empty());
    }
}

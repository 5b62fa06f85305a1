//! Architecture-specific spelling of registers and counters in P4.

use crate::arch::Arch;
use crate::writer::Writer;

/// Architecture for which the fault engine's P4 text is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect(pub Arch);

impl Dialect {
    /// Whether the architecture is Tofino's, where table actions run registers; others access them in statements.
    pub fn is_tna(self) -> bool {
        self.0 == Arch::Tna
    }

    /// Declares a counter of packets with `cells` cells.
    pub fn counter(self, w: &mut Writer, name: &str, index: &str, cells: usize) {
        w.line(match self.0 {
            Arch::Psa => {
                format!("Counter<bit<64>, {index}>({cells}, PSA_CounterType_t.PACKETS) {name};")
            }
            Arch::V1model => format!("counter({cells}, CounterType.packets) {name};"),
            Arch::Tna => {
                format!("Counter<bit<64>, {index}>({cells}, CounterType_t.PACKETS) {name};")
            }
        });
    }

    /// P4 statement that counts a packet in the counter's cell with index `cell_`.
    pub fn count(self, name: &str) -> String {
        match self.0 {
            Arch::V1model => format!("{name}.count((bit<32>) cell_);"),
            Arch::Psa | Arch::Tna => format!("{name}.count(cell_);"),
        }
    }

    /// P4 statement that counts a packet in the only cell of a counter.
    pub fn count_once(self, name: &str) -> String {
        match self.0 {
            Arch::V1model => format!("{name}.count((bit<32>) 0);"),
            Arch::Psa | Arch::Tna => format!("{name}.count(0);"),
        }
    }

    /// Declares a register of `cells` words of type `word`, initially 0.
    pub fn register(self, w: &mut Writer, name: &str, word: &str, index: &str, cells: usize) {
        w.line(match self.0 {
            Arch::Psa => format!("Register<{word}, {index}>({cells}) {name};"),
            Arch::V1model => format!("register<{word}>({cells}) {name};"),
            Arch::Tna => format!("Register<{word}, {index}>({cells}, 0) {name};"),
        });
    }

    /// P4 statement that reads the cell at index `at` of a register into a variable.
    pub fn read(self, register: &str, into: &str, at: &str) -> String {
        match self.0 {
            Arch::V1model => format!("{register}.read({into}, (bit<32>) {at});"),
            Arch::Psa | Arch::Tna => format!("{into} = {register}.read({at});"),
        }
    }

    /// P4 statement that writes a value to the cell at index `at` of a register.
    pub fn write(self, register: &str, value: &str, at: &str) -> String {
        match self.0 {
            Arch::V1model => format!("{register}.write((bit<32>) {at}, {value});"),
            Arch::Psa | Arch::Tna => format!("{register}.write({at}, {value});"),
        }
    }
}

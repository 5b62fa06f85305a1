//! Makes a data plane of P4 text: p4lang compiles the text, [`pipeline`] executes the program.

use crate::dataplane::{Dataplane, LoadError, Loader, Program};
use crate::trace::Form;
use cli_io::disk::{self, Disk};
use p4lang::diagnostics::{Code as DiagnosticCode, Sink};
use p4lang::{Compiled, Options};
use pipeline::Switch;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

/// Loads programs whose device config is P4 text in a single file, like [`Compiled::preprocessed`].
#[derive(Debug, Clone, Default)]
pub struct P4Loader {
    /// Configuration of the switch that executes a loaded program.
    pub config: pipeline::Config,
    /// The format in which each packet's steps are printed; `None`: no trace.
    pub trace: Option<Form>,
    /// Whether the log messages of loaded programs are printed.
    pub logs: bool,
}

impl Loader for P4Loader {
    fn load(&self, device_config: &[u8]) -> Result<Program, LoadError> {
        let text = std::str::from_utf8(device_config)
            .map_err(|error| LoadError(format!("the device config is not P4 text: {error}")))?;
        let name = "device config";
        let file = |path: &str| (path == name).then(|| text.to_owned());
        let compiled = p4lang::compile(&file, name, &Options::default())
            .map_err(|errors| LoadError(errors.to_string()))?;
        self.program(compiled)
    }
}

impl P4Loader {
    /// Compiles a P4 file with its includes, and prints the compiler's warnings; returns the program and its device config.
    pub fn load_file(
        &self,
        path: &Path,
        options: &Options,
    ) -> Result<(Program, Vec<u8>), LoadError> {
        let name = disk::name(path)
            .map_err(|why| LoadError(format!("error: cannot read {}: {why}", path.display())))?;
        let compiled = p4lang::compile(&Disk, name, options)
            .map_err(|errors| LoadError(errors.to_string()))?;
        let output = std::io::stderr();
        // A failure to print is ignored.
        let _ = write!(
            &output,
            "{}",
            compiled.warnings.render(output.is_terminal())
        );
        let device_config = compiled.preprocessed.clone().into_bytes();
        Ok((self.program(compiled)?, device_config))
    }

    /// Makes a compiled program ready to run.
    pub fn program(&self, compiled: Compiled) -> Result<Program, LoadError> {
        let program = Arc::new(compiled.program);
        let refused = |error| LoadError(refusal(&program, &error));
        if let pipeline::Ports::Only(ports) = &self.config.ports {
            let check =
                |port: &u32| pipeline::check_attachable(&program.arch, self.config.cpu_port, *port);
            let checked = ports.iter().try_for_each(check);
            checked.map_err(|error| LoadError(format!("error: --interface: {error}")))?;
        }
        let mut switch = Switch::new(Arc::clone(&program), self.config.clone()).map_err(refused)?;
        if self.trace.is_some() {
            switch.set_tracing(true);
        }
        let logs = self.logs && switch.set_logging();
        let text = self.config.poison.is_some() || logs;
        let told = self.trace.or(text.then_some(Form::Text));
        Ok(Program {
            p4info: compiled.p4info,
            dataplane: Dataplane::new(switch, told),
        })
    }
}

/// Text that says why a program cannot be loaded, with the position in its source if there is one.
pub(crate) fn refusal(program: &p4lang::ir::Program, error: &pipeline::LoadError) -> String {
    let Some(span) = error.span() else {
        return error.to_string();
    };
    let code = match error {
        pipeline::LoadError::TooLarge { .. } => DiagnosticCode::Limit,
        _ => DiagnosticCode::Unsupported,
    };
    let mut sink = Sink::new();
    sink.error(code, span, error.to_string());
    sink.finish(Arc::clone(&program.source)).to_string()
}

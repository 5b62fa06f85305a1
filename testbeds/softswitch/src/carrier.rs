//! Reports to the packet loop when an interface behind a port gains or loses carrier, as the kernel notifies (rtnetlink(7)).

use crate::driver::{Handle, Stopped};
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::link::{LinkFlags, LinkMessage};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use tokio_stream::{Stream, StreamExt};

type Messages = Pin<Box<dyn Stream<Item = NetlinkMessage<RouteNetlinkMessage>> + Send>>;

/// Listens to the kernel's notifications of carrier changes.
pub(crate) struct Carrier {
    /// Last known carrier of each interface, by interface index; the packet loop initially assumes that all have carrier.
    interfaces: BTreeMap<u32, bool>,
    messages: Messages,
    kernel: rtnetlink::Handle,
}

impl Carrier {
    /// Starts to listen for carrier changes of these interfaces (indices in this network namespace), on the current runtime.
    /// `None`: the list is empty, or the kernel refuses, of which the log has a warning.
    pub(crate) fn watch(interfaces: Vec<u32>) -> Option<Carrier> {
        if interfaces.is_empty() {
            return None;
        }
        match Self::open(interfaces) {
            Ok(carrier) => Some(carrier),
            Err(error) => {
                tracing::warn!(%error, "cannot watch the carrier of ports");
                None
            }
        }
    }

    fn open(interfaces: Vec<u32>) -> io::Result<Carrier> {
        let (connection, kernel, messages) =
            rtnetlink::new_multicast_connection(&[MulticastGroup::Link])?;
        tokio::spawn(connection);
        Ok(Carrier {
            interfaces: interfaces.into_iter().map(|index| (index, true)).collect(),
            messages: Box::pin(messages.map(|(message, _)| message)),
            kernel,
        })
    }

    /// Reports carrier changes to the packet loop, until the kernel's notifications end or the packet loop stops.
    pub(crate) async fn report(mut self, driver: Handle) {
        // On `Stopped`, no receiver of the reports is left.
        while let Ok(true) = self.report_all(&driver).await {
            if let Ok(Next::End) | Err(Stopped) = self.report_changes(&driver).await {
                return;
            }
        }
    }

    /// Reports the current carrier of all interfaces. Runs after the subscription to changes, so that no change is missed in
    /// between. Returns false if the kernel does not answer.
    async fn report_all(&mut self, driver: &Handle) -> Result<bool, Stopped> {
        let mut absent: Vec<u32> = self.interfaces.keys().copied().collect();
        let mut links = self.kernel.link().get().execute();
        loop {
            match links.next().await {
                Some(Ok(link)) => {
                    absent.retain(|index| *index != link.header.index);
                    self.link(driver, &link).await?;
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "cannot watch the carrier of ports");
                    return Ok(false);
                }
                None => break,
            }
        }
        for index in absent {
            self.set(driver, index, false).await?;
        }
        Ok(true)
    }

    async fn report_changes(&mut self, driver: &Handle) -> Result<Next, Stopped> {
        use RouteNetlinkMessage::{DelLink, NewLink};
        while let Some(message) = self.messages.next().await {
            match message.payload {
                NetlinkPayload::InnerMessage(NewLink(link)) => self.link(driver, &link).await?,
                // A bridge sends this for an interface that leaves it.
                NetlinkPayload::InnerMessage(DelLink(link))
                    if link.header.interface_family == AddressFamily::Unspec =>
                {
                    self.set(driver, link.header.index, false).await?;
                }
                NetlinkPayload::Overrun(_) => return Ok(Next::Missed),
                _ => {}
            }
        }
        Ok(Next::End)
    }

    async fn link(&mut self, driver: &Handle, link: &LinkMessage) -> Result<(), Stopped> {
        let running = link.header.flags.contains(LinkFlags::Running);
        self.set(driver, link.header.index, running).await
    }

    async fn set(&mut self, driver: &Handle, index: u32, carrier: bool) -> Result<(), Stopped> {
        match self.interfaces.get_mut(&index) {
            Some(known) if *known != carrier => *known = carrier,
            _ => return Ok(()),
        }
        driver
            .run(move |core| core.set_carrier(index, carrier))
            .await
    }
}

/// The reason why the stream of notifications is interrupted.
enum Next {
    /// The kernel dropped notifications because the socket's buffer was full.
    Missed,
    /// The kernel closed the socket, so no more notifications come.
    End,
}

use super::*;

const SOON: Duration = Duration::from_millis(60);

#[tokio::test]
async fn an_address_where_nobody_listens() {
    // Bound and dropped: free, and refused at once.
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let error = Client::connect(&address, 1, SOON).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Unreachable { address: at, waited: SOON, .. } if *at == address),
        "{error}"
    );
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn an_attempt_that_the_deadline_cuts_off_hides_no_error() {
    let mut attempts = 0;
    let connected = retried(SOON, || {
        attempts += 1;
        let first = attempts == 1;
        async move {
            if first {
                return Err::<(), _>("refused");
            }
            std::future::pending().await
        }
    });
    assert_eq!(connected.await, Err(Some("refused")));
    let connected = retried(SOON, std::future::pending::<std::result::Result<(), &str>>);
    assert_eq!(connected.await, Err(None));
}

#[tokio::test]
async fn a_switch_that_accepts_and_says_nothing() {
    // The kernel completes the handshake; no server ever reads.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut client = Client::connect(&address, 1, SOON).await.unwrap();
    let error = client.become_primary(1).await.unwrap_err();
    assert_eq!(
        error,
        ClientError::NoAnswer {
            address,
            waited: SOON
        }
    );
}

#[tokio::test]
async fn an_address_that_is_none() {
    let error = Client::connect("not an address", 1, SOON)
        .await
        .unwrap_err();
    assert_eq!(
        error,
        ClientError::Address {
            address: "not an address".into()
        }
    );
}

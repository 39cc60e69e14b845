/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenSSL's codes as sentences that name the side at fault and the fix. */
#include <stdio.h>

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509_vfy.h>

#include "secure/secure.h"

/* Alerts of the peer (RFC 8446, 6.2) as a sentence for each side; NULL: no meaning on that side. */
static const struct {
	int code;
	const char *agent, *load_balancer;
} alerts[] = {
	{SSL_R_TLSV1_ALERT_UNKNOWN_CA,
	 "the load balancer's ca did not sign --tls-certificate; have it signed by that one",
	 "the agent's --tls-ca did not sign our certificate"},
	{SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
	 "the load balancer says that --tls-certificate has "
	 "expired; renew it, and check both clocks",
	 "the agent says that our certificate has expired; renew it, and check both clocks"},
	{SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
	 "the load balancer finds --tls-certificate bad; is it valid yet, and what is signed?",
	 "the agent finds our certificate bad: does it have the name or address that the agent "
	 "dials?"},
	{SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
	 "--tls-certificate is not for clients; it needs the extended key usage clientAuth",
	 "our certificate is not for servers; it needs the extended key usage serverAuth"},
	{SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,
	 "the load balancer says that --tls-certificate was "
	 "revoked",
	 "the agent says that our certificate was revoked"},
	{SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED,
	 "the load balancer wants a certificate; give --tls-certificate and --tls-key", NULL},
	{SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the load balancer does not speak TLS 1.3",
	 "the agent does not speak TLS 1.3"},
	{SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
	 "the load balancer does not take what we offer; does it have the same token, or "
	 "certificates?",
	 "the agent does not take what we offer"},
	{SSL_R_TLSV1_ALERT_DECRYPT_ERROR,
	 "the load balancer's ca did not sign --tls-certificate, though one of its name did",
	 "the agent's --tls-ca did not sign our certificate, though one of its name did"},
	{SSL_R_TLSV1_ALERT_INTERNAL_ERROR, "the load balancer has an error of its own; see its log",
	 "the agent has an error of its own; see its log"},
};

/* Errors that this side found, as a sentence for each side. */
static const struct {
	int code;
	const char *agent, *load_balancer;
} faults[] = {
	{SSL_R_WRONG_VERSION_NUMBER,
	 "the load balancer does not speak TLS there; start the agent without --tls-* and "
	 "--token-file, or give the load balancer's control: tls or token_file",
	 "that is not TLS; does the agent have --tls-certificate or --token-file?"},
	{SSL_R_HTTP_REQUEST, NULL, "that is not TLS but HTTP"},
	{SSL_R_UNSUPPORTED_PROTOCOL, "the load balancer does not speak TLS 1.3",
	 "the agent does not speak TLS 1.3"},
	{SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, NULL,
	 "the agent has no certificate; it needs --tls-certificate and --tls-key"},
	{SSL_R_BINDER_DOES_NOT_VERIFY, NULL, "the agent has another token of the same name"},
	{SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, NULL,
	 "the agent has another token, or none: compare both token files"},
	{SSL_R_NO_SHARED_CIPHER, NULL,
	 "the agent has another token, or none: compare both token files"},
};

static void write_reason(enum secure_side side, const char *agent, const char *load_balancer,
			 const char *otherwise, char *out, size_t size)
{
	const char *text = side == SECURE_AGENT ? agent : load_balancer;

	snprintf(out, size, "%s", text != NULL ? text : otherwise);
}

/* True for an agent with a token, which neither offers nor wants certificates. */
static bool has_token(enum secure_side side, const SSL *ssl)
{
	return side == SECURE_AGENT && secure_context_tokens(SSL_get_SSL_CTX(ssl)) != NULL;
}

static void bad_certificate(enum secure_side side, const SSL *ssl, char *out, size_t size)
{
	long result = SSL_get_verify_result(ssl);
	const char *owner = side == SECURE_AGENT ? "the load balancer's certificate"
						 : "the agent's certificate";

	if (has_token(side, ssl))
		snprintf(out, size, "the load balancer does not have our token, but certificates");
	else if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH)
		snprintf(out, size,
			 "%s is not for the name or address in --lb; --tls-name gives "
			 "the one it is for",
			 owner);
	else
		snprintf(out, size, "%s is refused: %s", owner,
			 X509_verify_cert_error_string(result));
}

/*
 * True when the peer's binder does not match. RFC 8446, 4.2.11 wants decrypt_error; OpenSSL before
 * 3.5 sends illegal_parameter.
 */
static bool is_about_token(enum secure_side side, const SSL *ssl, int reason)
{
	return has_token(side, ssl) && (reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR ||
					reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER);
}

void secure_reason(enum secure_side side, const SSL *ssl, unsigned long code, char *out,
		   size_t size)
{
	const char *text = ERR_reason_error_string(code);
	int reason = ERR_GET_REASON(code);

	if (code == 0) {
		snprintf(out, size, "%s closed the connection within the handshake",
			 side == SECURE_AGENT ? "the load balancer" : "the agent");
		return;
	}
	if (text == NULL)
		text = "unknown TLS error";
	if (is_about_token(side, ssl, reason)) {
		snprintf(out, size, "the load balancer does not have our token");
		return;
	}
	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
		bad_certificate(side, ssl, out, size);
		return;
	}
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].code == reason)
			return write_reason(side, faults[i].agent, faults[i].load_balancer, text,
					    out, size);
	for (size_t i = 0; i < sizeof(alerts) / sizeof(alerts[0]); i++)
		if (alerts[i].code == reason)
			return write_reason(side, alerts[i].agent, alerts[i].load_balancer, text,
					    out, size);
	snprintf(out, size, "%s", text);
}

import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { onTestFinished } from 'vitest';

export const ISSUER = 'https://id.example/';
export const AUDIENCE = 'tollgate-admin';

export interface IssuerKey {
  readonly privateKey: CryptoKey;
  readonly publicJwk: JWK;
}

export async function createIssuerKey(kid: string | undefined, alg = 'ES256'): Promise<IssuerKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg);
  return { privateKey, publicJwk: { ...(await exportJWK(publicKey)), alg, ...(kid !== undefined && { kid }) } };
}

/** The claims of a token that is good for an hour from `nowMs`, changed by `changes`; undefined takes one away. */
export function claimsAt(nowMs: number, changes: Record<string, unknown> = {}): Record<string, unknown> {
  const seconds = Math.floor(nowMs / 1000);
  const claims = { iss: ISSUER, aud: AUDIENCE, sub: 'ops@example', scope: 'tollgate:read', iat: seconds };
  return { ...claims, exp: seconds + 3600, ...changes };
}

export function sign(key: IssuerKey, claims: Record<string, unknown>): Promise<string> {
  const { alg = '', kid } = key.publicJwk;
  return new SignJWT(claims).setProtectedHeader({ alg, ...(kid !== undefined && { kid }) }).sign(key.privateKey);
}

export interface Issuer {
  readonly url: string;
  /** How often the keys were asked for. */
  readonly asked: number;
  /** What it answers from now on. */
  answer: RequestListener;
  publish(...keys: readonly IssuerKey[]): void;
}

/** Serves a key set on a port of 127.0.0.1, until the test that called this ends. */
export async function startIssuer(...keys: readonly IssuerKey[]): Promise<Issuer> {
  let asked = 0;
  const issuer = {
    url: '',
    get asked() {
      return asked;
    },
    answer: notFound,
    publish(...published: readonly IssuerKey[]) {
      issuer.answer = (_req, res) => {
        res.setHeader('Content-Type', 'application/json');
        res.end(JSON.stringify({ keys: published.map(({ publicJwk }) => publicJwk) }));
      };
    },
  };
  issuer.publish(...keys);
  const server = createServer((req, res) => {
    asked++;
    issuer.answer(req, res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return issuer;
}

export const notFound: RequestListener = (_req, res) => {
  res.writeHead(404).end();
};

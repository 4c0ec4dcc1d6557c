import type { IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { identifyClient } from '../../src/edge/client-address.ts';
import { AddressBlocks } from '../../src/formats/address-block.ts';

const TRUST = {
  trustedProxies: new AddressBlocks(['10.0.0.0/8', '192.0.2.1', '2001:db8::/32']),
  trustForwardedHost: true,
};

function identify(remoteAddress: string, headers: IncomingHttpHeaders, trust = TRUST) {
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress });
  return identifyClient({ headers, socket }, trust);
}

describe('what an untrusted peer claims is dropped', () => {
  it('address, protocol and host are made anew', () => {
    const claims = { 'x-forwarded-for': '1.1.1.1', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'bank.example' };
    expect(identify('203.0.113.9', claims)).toEqual({
      address: '203.0.113.9',
      isNamed: false,
      forwardedFor: '203.0.113.9',
      proto: 'http',
      host: undefined,
    });
  });
});

describe('what a trusted proxy says is extended', () => {
  it.each([
    ['one hop', '10.0.0.1', '203.0.113.9', '203.0.113.9', '203.0.113.9, 10.0.0.1'],
    [
      'the nearest untrusted hop is the caller',
      '10.0.0.1',
      '6.6.6.6, 203.0.113.9, 10.0.0.2',
      '203.0.113.9',
      '6.6.6.6, 203.0.113.9, 10.0.0.2, 10.0.0.1',
    ],
    [
      'a hop that is no address ends the search',
      '10.0.0.1',
      '6.6.6.6, unknown, 10.0.0.2',
      '10.0.0.2',
      '6.6.6.6, unknown, 10.0.0.2, 10.0.0.1',
    ],
    ['all hops trusted', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3', '10.0.0.3, 10.0.0.2, 10.0.0.1'],
    [
      'an IPv4 peer on a dual-stack socket',
      '::ffff:10.0.0.1',
      '::ffff:203.0.113.9',
      '203.0.113.9',
      '::ffff:203.0.113.9, 10.0.0.1',
    ],
    ['a hop with its port', '10.0.0.1', '203.0.113.9:5555', '203.0.113.9', '203.0.113.9:5555, 10.0.0.1'],
    ['an IPv6 hop in brackets', '10.0.0.1', '[2001:4860::1]:443', '2001:4860::1', '[2001:4860::1]:443, 10.0.0.1'],
    [
      'a mapped hop, whatever its spelling',
      '10.0.0.1',
      '::FFFF:cb00:7109',
      '203.0.113.9',
      '::FFFF:cb00:7109, 10.0.0.1',
    ],
    ['an IPv6 hop in long form', '10.0.0.1', '2001:4860:0::0001', '2001:4860::1', '2001:4860:0::0001, 10.0.0.1'],
    ['IPv6', '2001:db8::7', '2001:4860::1', '2001:4860::1', '2001:4860::1, 2001:db8::7'],
  ])('%s', (_, peer, forwardedFor, address, extended) => {
    expect(identify(peer, { 'x-forwarded-for': forwardedFor })).toMatchObject({ address, forwardedFor: extended });
  });

  it('protocol and host are kept when they make sense', () => {
    const good = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.example:8443' };
    expect(identify('10.0.0.1', good)).toMatchObject({
      proto: 'https',
      host: 'api.example:8443',
    });
    const listed = { 'x-forwarded-proto': 'https, http', 'x-forwarded-host': 'api.example, inner.example' };
    expect(identify('10.0.0.1', listed)).toMatchObject({ proto: 'http', host: 'inner.example' });
    const bad = { 'x-forwarded-proto': 'ftp', 'x-forwarded-host': 'a b' };
    expect(identify('10.0.0.1', bad)).toMatchObject({ proto: 'http', host: undefined });
  });

  it('X-Forwarded-Host is ignored unless the setting allows it', () => {
    const headers = { 'x-forwarded-host': 'api.example' };
    expect(identify('10.0.0.1', headers, { ...TRUST, trustForwardedHost: false }).host).toBeUndefined();
  });
});

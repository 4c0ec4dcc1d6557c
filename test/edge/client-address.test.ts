import { describe, expect, it } from 'vitest';
import { type Arrival, identifyCaller, TrustedProxies } from '../../src/edge/client-address.ts';

const trusted = new TrustedProxies(['10.0.0.0/8', '192.0.2.1', '2001:db8::/32']);

function arrive(peerAddress: string, forwarded: Partial<Arrival> = {}): Arrival {
  return {
    peerAddress,
    encrypted: false,
    forwardedFor: undefined,
    forwardedProto: undefined,
    forwardedHost: undefined,
    ...forwarded,
  };
}

describe('what an untrusted peer claims is dropped', () => {
  it('address, protocol and host are made anew', () => {
    const claims = { forwardedFor: '1.1.1.1', forwardedProto: 'https', forwardedHost: 'bank.example' };
    expect(identifyCaller(arrive('203.0.113.9', claims), trusted)).toEqual({
      address: '203.0.113.9',
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
    ['IPv6', '2001:db8::7', '2001:4860::1', '2001:4860::1', '2001:4860::1, 2001:db8::7'],
  ])('%s', (_, peer, forwardedFor, address, extended) => {
    expect(identifyCaller(arrive(peer, { forwardedFor }), trusted)).toMatchObject({ address, forwardedFor: extended });
  });

  it('protocol and host are kept when they make sense', () => {
    const good = { forwardedProto: 'https', forwardedHost: 'api.example:8443' };
    expect(identifyCaller(arrive('10.0.0.1', good), trusted)).toMatchObject({
      proto: 'https',
      host: 'api.example:8443',
    });
    const listed = { forwardedProto: 'https, http', forwardedHost: 'api.example, inner.example' };
    expect(identifyCaller(arrive('10.0.0.1', listed), trusted)).toMatchObject({ proto: 'http', host: 'inner.example' });
    const bad = { forwardedProto: 'ftp', forwardedHost: 'a b' };
    expect(identifyCaller(arrive('10.0.0.1', bad), trusted)).toMatchObject({ proto: 'http', host: undefined });
  });
});

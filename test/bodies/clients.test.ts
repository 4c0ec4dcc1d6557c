/** Uploads by common HTTP clients through a gateway process. To Express and nginx: clients.load.test.ts. */
import { expect, it } from 'vitest';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { digesting } from './support.ts';
import { fromDigest, prepareUpload, ROUTES, uploadAll } from './uploading-clients.ts';

prepareUpload();

it('every client uploads to Node.js unchanged', async () => {
  const gateway = await startGatewayProcess({ config: { routes: ROUTES }, answer: digesting });
  const { checksums, expected } = await uploadAll(gateway, fromDigest);
  expect(checksums).toEqual(expected);
});

# docs/deploy.md describes reproducible builds, and how to pin the base image by digest. The tag names exact versions of
# Node.js and Debian, but a registry may rebuild it:
# node:26.10.0-trixie-slim@sha256:… (docker buildx imagetools inspect node:26.10.0-trixie-slim).
FROM node:26.10.0-trixie-slim AS base
WORKDIR /app

# Node.js and the libraries that it is linked with: no shell, no npm, no package manager. CA certificates and time zones
# are in Node.js.
FROM base AS runtime
RUN mkdir /runtime \
 && libraries=$(ldd /usr/local/bin/node | grep -o '/[^ )]*') \
 && cp --parents --dereference $libraries /usr/local/bin/node /runtime \
 && . /etc/os-release \
 && dpkg-query --search $(realpath $libraries) | cut -d: -f1 | sort --unique | xargs dpkg-query --show \
      --showformat="\${Package} \${Version} \${Architecture} \${source:Package} $ID-$VERSION_ID\n" >/debian-packages

FROM base AS dependencies
COPY package.json package-lock.json .npmrc ./
# optionalDependencies are the bundled Node.js; the image has its own.
RUN npm ci --omit=dev --omit=optional --no-audit --no-fund
# Types, sources, source maps, tests and READMEs of packages are never read.
RUN find node_modules -type f \( -name '*.ts' -o -name '*.?ts' -o -name '*.map' -o -name '*.md' \) \
      ! -iname 'licen?e*' -delete \
 && rm -r node_modules/.package-lock.json node_modules/*/test node_modules/@*/*/test
COPY scripts/sbom.ts ./scripts/
COPY --from=runtime /debian-packages /
RUN node scripts/sbom.ts --image /debian-packages >sbom.json

FROM scratch
# docker build --build-arg REVISION=$(git rev-parse HEAD)
ARG REVISION=""
LABEL org.opencontainers.image.title="tollgate" \
      org.opencontainers.image.description="API gateway: API keys, hourly quotas, one REST backend" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="0.3.0-dev" \
      org.opencontainers.image.revision="${REVISION}"
ENV PATH=/usr/local/bin NODE_ENV=production
COPY --from=runtime /runtime /
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=dependencies /app/sbom.json ./
COPY package.json LICENSE ./
COPY config/gateway.yaml ./config/
# Node.js runs the sources: docs/dev/decisions/0001-node-runs-typescript-sources.md.
COPY src ./src
# A number, so that Kubernetes can check that it is not root. The gateway writes no files.
USER 10001:10001
EXPOSE 8080 8081 8082
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "require('node:http').get({ host: '127.0.0.1', port: process.env.OPS_PORT || 8081, path: '/livez' }, (answer) => process.exit(answer.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# node is process 1: it gets SIGTERM and drains. Allow enough time: docker run --stop-timeout 30. SIGUSR1 would open the
# inspector, which runs any code.
ENTRYPOINT ["node", "--disable-sigusr1", "src/main.ts"]
CMD ["start", "--config", "config/gateway.yaml"]

# The image has its own Node.js, so the platform packages of optionalDependencies stay out.
FROM node:26-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional

FROM node:26-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
COPY config ./config
USER node
EXPOSE 8080 8081 8082
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8081/livez').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# node itself is the first process: it gets SIGTERM and drains.
CMD ["node", "src/main.ts", "start", "--config", "config/gateway.yaml"]

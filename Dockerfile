# One image for every role: the command determines whether a container is an api, a worker or an admin shell.
FROM node:24-bookworm-slim AS build
WORKDIR /app
# Packages change less often than sources, so they get their own layer.
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
# test/ and examples/ are not in the build context, so dist/ contains only what runs.
RUN npm run build && rm dist/.tsbuildinfo-build dist/.bootstrap-stamp-web
# Removes the packages that only the embedded servers need, by name: --omit=optional would also remove sharp's binaries,
# which are optional packages of sharp.
RUN npm prune --omit=dev --no-audit --no-fund \
  && npm uninstall --no-save --omit=dev --no-audit --no-fund \
    $(node --print "Object.keys(require('./package.json').optionalDependencies).join(' ')") \
  # An optional peer of valibot, so npm keeps it: 31 MB that nothing loads.
  && rm -rf node_modules/typescript node_modules/@typescript

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 CATALOG=/app/catalog.yaml
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/catalog.yaml ./
# The pages under /docs.
COPY --from=build /app/docs/guides ./docs/guides
# This user comes with the base image. The process writes nothing to the container's disk.
USER node
EXPOSE 8080
STOPSIGNAL SIGTERM
# Run node directly: under npm, SIGTERM would reach npm first.
CMD ["node", "--enable-source-maps", "--max-semi-space-size=32", "dist/api/main.js"]

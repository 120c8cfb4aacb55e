import { checkUpstreams } from '../../../shared/doctor/check-upstreams.ts';
import { reportFindings, type DoctorReport } from '../../../shared/doctor/finding.ts';
import { SingleFlight } from '../../../shared/platform/storage/single-flight.ts';
import { operations } from '../../contract/operations.ts';
import { defineAdminEndpoint, trailOf } from './define-admin-endpoint.ts';

export const getDoctorReport = defineAdminEndpoint(
  operations.getDoctorReport,
  ({ doctor }) =>
    () =>
      doctor.get(),
);

/** Longer than a worker may take for its calls. */
const maxCheckMs = 120_000;

/** Not in a turn: it waits for workers. */
export const checkAdminUpstreams = defineAdminEndpoint(operations.checkAdminUpstreams, (services) => {
  const checks = new SingleFlight<DoctorReport>('calling the upstreams', maxCheckMs);
  return (context) =>
    checks.run('', () =>
      reportFindings(() => checkUpstreams(services.redis, services.catalog, trailOf(services, context))),
    );
});

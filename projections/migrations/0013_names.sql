-- Names of code are checked without a count in the pattern: for that the matcher makes a state for each of 64
-- characters, in each check, which was half the cost of a row of worker_queue. What is stored has passed the check of
-- before, which says the same.
ALTER DOMAIN code_name DROP CONSTRAINT code_name_check;
ALTER DOMAIN code_name ADD CONSTRAINT code_name_check
    CHECK (octet_length(VALUE) BETWEEN 1 AND 64 AND VALUE !~ '[^A-Za-z0-9_-]') NOT VALID;
ALTER DOMAIN code_name_or_none DROP CONSTRAINT code_name_or_none_check;
ALTER DOMAIN code_name_or_none ADD CONSTRAINT code_name_or_none_check
    CHECK (octet_length(VALUE) <= 64 AND VALUE !~ '[^A-Za-z0-9_-]') NOT VALID;
